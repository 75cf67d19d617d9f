package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/admin"
	"github.com/isthmus/isthmus/translate/placement"
)

// printPlan shows where a create would go: the pools in the order in which they are tried, then those that do not
// qualify, and why.
func printPlan(cmd *cobra.Command, planned admin.Planned) error {
	out, decision := cmd.OutOrStdout(), planned.Decision
	fmt.Fprintf(out, "template %s, ranked by %s\n\n", decision.Template, cmp.Or(strings.Join(decision.Rank, ", "), "the order of the configuration"))
	t := table(cmd)
	fmt.Fprintln(t, "PLACE\tPOOL\tPROVIDER\tISOLATION\tREGION\tSIZE\tUSD/HOUR\tSTART\tSUCCESS\tWHY NOT")
	for _, c := range decision.Candidates {
		place, why := "-", placement.Why(c.Pool, c.Unmet)
		if c.Place > 0 {
			place, why = strconv.Itoa(c.Place), "-"
		}
		start, success := figuresOf(c.Live)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s (%s)\t%s\t%s\t%s\t%s\t%s\t%s\n", place, c.Pool, c.Provider,
			cmp.Or(c.Isolation, placement.IsolationUnknown), c.Evidence, cmp.Or(c.Region, "-"), sizeOf(c.Size), priceOf(c.Cost), start, success, why)
	}
	if err := t.Flush(); err != nil || planned.Refusal == "" {
		return err
	}
	_, err := fmt.Fprintln(out, "\n"+planned.Refusal)
	return err
}

// figuresOf are the median time of a create and the share of those that went well, in words.
func figuresOf(live placement.Live) (start, success string) {
	start, success = "-", "-"
	if live.StartP50 > 0 {
		start = time.Duration(live.StartP50).Round(time.Millisecond).String()
	}
	if live.Creates > 0 {
		success = fmt.Sprintf("%.0f%% of %d", 100*live.SuccessRate, live.Creates)
	}
	return start, success
}

// sizeOf is a size in words; what is not known is left out.
func sizeOf(size adapters.Resources) string {
	var words []string
	for _, one := range []struct {
		n    int
		unit string
	}{{size.CPU, " CPU"}, {size.MemoryMB, " MiB"}, {size.DiskMB, " MiB disk"}} {
		if one.n > 0 {
			words = append(words, strconv.Itoa(one.n)+one.unit)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

// priceOf is the likely price of an hour; "-": it is not known.
func priceOf(cost *placement.Cost) string {
	if cost == nil {
		return "-"
	}
	return strconv.FormatFloat(cost.Hour, 'f', 4, 64)
}
