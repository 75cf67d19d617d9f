package fleet

import (
	"fmt"
	"slices"
	"strings"
)

// dayPage is the table of a simulated day, as a page of the documentation.
func dayPage(days []day) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What rankings are worth\n\nMade by `go test ./server/fleet -run SimulatedDay -day`: a day of %d creates of an hour each over %d pools, in virtual\n"+
		"time, with the real decision, breakers and figures. Failures, prices and latencies of each pool drift over the day, every\n"+
		"fourth pool is away for an hour. The dice are the same for every ranking; the figures are of this model, not of any provider.\n\n"+
		"![cost and time of each ranking](ranking.svg)\n\n", days[0].creates, poolsOfADay)
	b.WriteString("| ranking | creates that failed | succeeded at the first try | tries | US dollars an hour | mean time | 95 of 100 within |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, d := range days {
		slices.Sort(d.worst)
		n := float64(len(d.worst))
		fmt.Fprintf(&b, "| %s | %d | %.2f %% | %d | %.4f | %.2f s | %.2f s |\n", d.ranking, d.failed, 100*float64(d.first)/float64(d.creates), d.tried,
			d.cost/n, d.seconds/n, d.worst[len(d.worst)*95/100])
	}
	return b.String()
}

// dayPlot draws cost against time, one dot for each ranking: the lower left is better in both.
func dayPlot(days []day) string {
	const width, height, margin = 640, 400, 60
	var b strings.Builder
	most := [2]float64{}
	for _, d := range days {
		most[0], most[1] = max(most[0], d.seconds/float64(len(d.worst))), max(most[1], d.cost/float64(len(d.worst)))
	}
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"+
		"<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n",
		width, height, width, height, margin, margin/2, height-margin, width-margin/2)
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">mean time of a create, up to %.2f s</text>\n<text x=\"%d\" y=\"20\">US dollars an hour, up to %.3f</text>\n",
		width/2-80, height-20, most[0], margin, most[1])
	for i, d := range days {
		x := margin + d.seconds/float64(len(d.worst))/most[0]*(width-2.5*margin)
		y := height - margin - d.cost/float64(len(d.worst))/most[1]*(height-2*margin)
		fmt.Fprintf(&b, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"5\" fill=\"#2b6cb0\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n", x, y, x-30, y-9+float64(i%2*27), d.ranking) // above and below, because some are close
	}
	b.WriteString("</svg>\n")
	return b.String()
}
