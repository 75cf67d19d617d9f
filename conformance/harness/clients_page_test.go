package harness

import (
	"fmt"
	"slices"
	"strings"
)

const clientsIntroduction = `# Old clients

Which versions of E2B's clients run here, unmodified, and in which areas. This page is written by
` + "`make test-clients`" + ` from what the clients did; that fails when it and this page differ.

All of them are told ` + "`E2B_DOMAIN`" + ` and ` + "`E2B_API_KEY`" + ` only, which is all that the first ones know, and reach Isthmus by host
name over TLS with a certificate of ` + "`isthmus tls init`" + ` ([connect.md](connect.md)). The newest versions are not listed: all
other tests are theirs.

"yes" is an area that passed, "–" one that the version does not have. What an area asks is in ` + "`conformance/sdk/old`" + `.
`

// clientsPage is the documentation of what the clients did: a table of version by area for each client.
func clientsPage(clients []oldClient, found [][]finding) string {
	var page strings.Builder
	page.WriteString(clientsIntroduction)
	for from := 0; from < len(clients); {
		to := from + len(clients[from].family.Versions)
		fmt.Fprintf(&page, "\n## %s\n\n", clients[from].family.Name)
		writeTable(&page, clients[from:to], found[from:to])
		from = to
	}
	return page.String()
}

// writeTable writes the versions of one client side by side.
func writeTable(page *strings.Builder, clients []oldClient, found [][]finding) {
	page.WriteString("| area |")
	for _, client := range clients {
		page.WriteString(" " + client.version + " |")
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(clients)) + "\n")
	for _, area := range areasOf(found) {
		page.WriteString("| " + area + " |")
		for _, each := range found {
			page.WriteString(" " + resultOf(each, area) + " |")
		}
		page.WriteString("\n")
	}
}

// areasOf are all areas that any version was asked for, in the order of the programs.
func areasOf(found [][]finding) []string {
	var areas []string
	for _, each := range found {
		for _, one := range each {
			if !slices.Contains(areas, one.Area) {
				areas = append(areas, one.Area)
			}
		}
	}
	return areas
}

func resultOf(found []finding, area string) string {
	for _, one := range found {
		switch {
		case one.Area != area:
		case one.Result == resultPassed:
			return "yes"
		case one.Result == resultAbsent:
			return "–"
		}
	}
	return "**no**"
}
