package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Page is the report as tables of Markdown: the ratios first.
func (r *Report) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Made %s on %d processors (%s), Linux %s, %s.\n\n", r.Made.Format("2006-01-02 15:04 MST"), r.Machine.Processors,
		strings.TrimSpace(r.Machine.Processor), r.Machine.Kernel, r.Machine.Go)
	b.WriteString(r.windows() + "\n\n| ratio | measured | bound | |\n| --- | ---: | ---: | --- |\n")
	for _, ratio := range r.Ratios {
		sign, verdict := "≤", "**missed**"
		if ratio.AtLeast {
			sign = "≥"
		}
		if ratio.Holds() {
			verdict = "holds"
		}
		fmt.Fprintf(&b, "| %s | %.2f | %s %s | %s |\n", ratio.Name, ratio.Value, sign, short(ratio.Bound), verdict)
	}
	targets := r.targets()
	fmt.Fprintf(&b, "\n| figure | unit | %s |\n| --- | --- |%s\n", strings.Join(targets, " | "), strings.Repeat(" ---: |", len(targets)))
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "| %s | %s |", row.Name, row.Unit)
		for _, target := range targets {
			text := ""
			if value, there := r.Value(row.Name, target); there {
				text = short(value)
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	for _, line := range r.Absent {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", line)
	}
	return b.String()
}

// windows says in which state the machine was.
func (r *Report) windows() string {
	quiet, least := 0, 1.0
	for _, w := range r.Windows {
		least = min(least, w.Idle)
		if w.Quiet {
			quiet++
		}
	}
	return fmt.Sprintf("%d of %d groups began in a quiet second (%.0f %% of the processors idle or more); the busiest began with %.0f %% idle.",
		quiet, len(r.Windows), quietShare*100, least*100)
}

// rows are the figures by name, each once, in the order in which they were measured.
func (r *Report) rows() []Figure {
	var rows []Figure
	for _, f := range r.Figures {
		if !slices.ContainsFunc(rows, func(row Figure) bool { return row.Name == f.Name }) {
			rows = append(rows, f)
		}
	}
	return rows
}

func (r *Report) targets() []string {
	var targets []string
	for _, f := range r.Figures {
		if !slices.Contains(targets, f.Target) {
			targets = append(targets, f.Target)
		}
	}
	return targets
}

// short writes three digits that count.
func short(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', max(digits, 0), 64)
}

// Plot draws every ratio as a bar against its bound, which is the line in the middle: left of it is better. The
// scale is logarithmic, a bar's length is by how much the bound is kept.
func (r *Report) Plot() string {
	const width, line, label, middle = 900, 22, 470, 680
	var b strings.Builder
	height := line*len(r.Ratios) + 60
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"+
		"<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<path d=\"M%d 30V%d\" stroke=\"black\"/>\n<text x=\"%d\" y=\"20\" text-anchor=\"middle\">the bound; left is better, each 60 points are a factor of two</text>\n",
		width, height, width, height, middle, height-20, middle)
	for i, ratio := range r.Ratios {
		off := ratio.Value / ratio.Bound
		if ratio.AtLeast {
			off = 1 / off
		}
		y, colour := 40+i*line, "#2b6cb0"
		if !ratio.Holds() {
			colour = "#c05621"
		}
		reach := max(-200, min(200, math.Log2(off)*60))
		if math.IsNaN(reach) {
			continue
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s: %s</text><rect x=\"%.0f\" y=\"%d\" width=\"%.0f\" height=\"12\" fill=\"%s\"/>\n",
			label, y+10, html.EscapeString(ratio.Name), short(ratio.Value), middle+min(reach, 0), y, max(1, math.Abs(reach)), colour)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
