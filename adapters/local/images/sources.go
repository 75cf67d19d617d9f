package images

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// release is the host's Debian release.
type release struct{ id, codename string }

// readRelease reads an os-release file.
func readRelease(file string) (release, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return release{}, err
	}
	var r release
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch value = strings.Trim(value, `"'`); name {
		case "ID":
			r.id = value
		case "VERSION_CODENAME":
			r.codename = value
		}
	}
	return r, nil
}

// sources collects from apt's folder the sources of the release itself, in deb822 form: the image gets its
// packages from where this machine gets them. Other sources, of vendors, are left out.
func sources(etcApt string, r release) (string, error) {
	if r.id != "debian" || r.codename == "" {
		return "", adapters.Errorf(adapters.KindUnsupported,
			"a base image can be built on Debian only: build it there and bring it in, or any image of yours that has bash, with `isthmus images import base FILE` (a tar, a folder, an OCI or Docker archive)")
	}
	files := []string{filepath.Join(etcApt, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(etcApt, "sources.list.d", pattern))
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	var stanzas []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		text := string(b)
		if strings.HasSuffix(f, ".list") {
			text = fromOneLine(text)
		}
		stanzas = append(stanzas, ofRelease(text, r.codename)...)
	}
	if len(stanzas) == 0 {
		return "", adapters.Errorf(adapters.KindUnsupported, "apt on this machine has no source of %s: add one, or import an image with `isthmus images import`", r.codename)
	}
	return strings.Join(stanzas, "\n"), nil
}

// ofRelease returns the deb822 stanzas of binary packages of the release, less its other suites.
func ofRelease(text, codename string) []string {
	var found []string
	for _, stanza := range strings.Split(withoutComments(text), "\n\n") {
		if s := stanzaOf(stanza, codename); s != "" {
			found = append(found, s)
		}
	}
	return found
}

// stanzaOf returns the stanza with the release's suites only, or nothing when it is about something else.
func stanzaOf(stanza, codename string) string {
	var out strings.Builder
	var binary, disabled bool
	var suites []string
	for line := range strings.Lines(strings.TrimSpace(stanza) + "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) { // a folded line begins with a space, so it is none of these
		case "types":
			binary = slices.Contains(strings.Fields(value), "deb")
			line = "Types: deb\n"
		case "suites":
			suites = keepSuites(strings.Fields(value), codename)
			line = "Suites: " + strings.Join(suites, " ") + "\n"
		case "enabled":
			disabled = strings.TrimSpace(value) == "no"
		}
		out.WriteString(line)
	}
	if !binary || disabled || len(suites) == 0 {
		return ""
	}
	return out.String()
}

func keepSuites(suites []string, codename string) []string {
	own := []string{codename, codename + "-updates", codename + "-security", codename + "/updates"}
	return slices.DeleteFunc(suites, func(s string) bool { return !slices.Contains(own, s) })
}

// withoutComments drops comment lines, which may stand between the fields of a stanza.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
		}
	}
	return b.String()
}

// fromOneLine turns lines such as "deb [signed-by=FILE] URI SUITE COMPONENT…" into stanzas.
func fromOneLine(text string) string {
	var b strings.Builder
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "deb ")
		if !ok {
			continue
		}
		signed := ""
		if options, rest, ok := strings.Cut(strings.TrimSpace(line), "]"); ok && strings.HasPrefix(options, "[") {
			line = rest
			for _, o := range strings.Fields(options[1:]) {
				if value, ok := strings.CutPrefix(o, "signed-by="); ok {
					signed = "Signed-By: " + value + "\n"
				}
			}
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		fmt.Fprintf(&b, "Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\n%s\n", f[0], f[1], strings.Join(f[2:], " "), signed)
	}
	return b.String()
}
