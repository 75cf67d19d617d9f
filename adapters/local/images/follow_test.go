package images

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unpack(dir, bytes.NewReader(pack(t,
		folder("d"), folder("d/e"), reg("f"), link("abs", "/d/e"), link("rel", "d/e"), link("up", "../../../d"),
		link("d/back", ".."), link("top", "/"), link("chain", "/c1"), link("c1", "c2"), link("c2", "/../d/./e/"),
		link("gone", "/not/there"), link("self", "self"), link("a", "/b"), link("b", "/a"),
	))))
	top, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer top.Close()
	for name, want := range map[string]string{
		".": ".", "d/e": "d/e", "none/such": "none/such", "f": "f",
		"abs": "d/e", "abs/x": "d/e/x", "rel/x": "d/e/x", "up/e": "d/e", "chain/x": "d/e/x",
		"d/back/f": "f", "d/back/d/back/d/e": "d/e", "top/top/top/f": "f", "top": ".",
		"../../f": "f", "abs/../../..": ".", "abs/..": "d", "gone/x": "not/there/x", "gone/../y": "not/y",
	} {
		got, err := follow(top, name)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, want := range map[string]error{"self": syscall.ELOOP, "a/x": syscall.ELOOP, "f/x": syscall.ENOTDIR} {
		_, err := follow(top, name)
		require.ErrorIs(t, err, want, name)
	}
	got, err := locate(top, "up/back")
	require.NoError(t, err)
	require.Equal(t, "d/back", got, "the last part is not followed")
}

func hard(name, to string) entry { return entry{Name: name, Typeflag: tar.TypeLink, Linkname: to} }

func node(name string, kind byte) entry {
	return entry{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: 1, Devminor: 3}
}

// Layers with links that lead, for a process of this machine, to a folder beside the tree.
func TestUnpackHostileLayers(t *testing.T) {
	const out = "OUT" // stands for that folder
	type layer = []entry
	for name, c := range map[string]struct {
		layers []layer
		want   []string // files that are there afterwards
		no     []string // and names that are not
	}{
		"/var/run as in most images": {
			layers: []layer{{folder("run"), folder("var"), link("var/run", "/run"), reg("var/run/pid"), link("var/lock", "/run/lock"), reg("var/lock/x")}},
			want:   []string{"run/pid", "run/lock/x"},
		},
		"an absolute link out": {
			layers: []layer{{link("esc", out), reg("esc/evil"), reg("esc/victim")}},
			want:   []string{out + "/evil", out + "/victim"},
		},
		"a relative link out": {
			layers: []layer{{link("d/esc", "../../../../../../../.."+out), reg("d/esc/victim")}},
			want:   []string{out + "/victim"},
		},
		"a chain out": {
			layers: []layer{{link("a", "b/c"), link("b", "/e"), link("e/c", "../f"), link("f", out+"/../x/.."), reg("a/victim")}},
			want:   []string{out + "/../victim"},
		},
		"a name that goes up": {
			layers: []layer{{link("esc", out), reg("esc/../../../up"), reg("../../" + out + "/victim")}},
			want:   []string{"up", out + "/victim"},
		},
		"a link swapped between layers": {
			layers: []layer{{folder("a"), link("l", "/a"), reg("l/x")}, {link("l", out), reg("l/victim")}, {folder("l"), reg("l/y")}},
			want:   []string{"a/x", out + "/victim", "l/y"}, no: []string{"a/y", "a/victim", out + "/y"},
		},
		"a folder swapped for a link between layers": {
			layers: []layer{{folder("d"), reg("d/x")}, {link("d", out), reg("d/victim"), folder("d/sub"), reg("d/sub/y")}},
			want:   []string{out + "/victim", out + "/sub/y"},
		},
		"a link swapped within a layer": {
			layers: []layer{{folder("a"), folder("b"), link("l", "/a"), reg("l/x"), link("l", "/b"), reg("l/y"), link("l", out), reg("l/victim")}},
			want:   []string{"a/x", "b/y", out + "/victim"}, no: []string{"a/y", "b/victim"},
		},
		"a link that replaces the folder it is in": {
			layers: []layer{{folder("d"), link("d/l", "."), reg("d/l/x"), folder("d/l/l"), reg("d/l/y")}},
			want:   []string{"d/x", "d/l/y"}, no: []string{"d/y"},
		},
		"hard links through links": {
			layers: []layer{{folder("a"), reg("a/x"), link("l", "/a"), hard("l/y", "l/x"), hard("z", "/l/y"), hard("l/x", "a/x")}},
			want:   []string{"a/x", "a/y", "z"},
		},
		"a hard link to a link": {
			layers: []layer{{reg("x"), link("l", out+"/victim"), hard("h", "l")}},
			want:   []string{"x"},
		},
		"devices and pipes": {
			layers: []layer{{link("esc", out), node("esc/null", tar.TypeChar), node("esc/disk", tar.TypeBlock), node("pipe", tar.TypeFifo), node("l/null", tar.TypeChar)}},
			no:     []string{"pipe", "l/null", out + "/null", out + "/disk"},
		},
		"removals through links": {
			layers: []layer{{folder(out), reg(out + "/victim"), reg(out + "/other"), reg("d/x")}, {link("esc", out), reg("esc/.wh.victim"), link("all", "/d"), reg("all/.wh..wh..opq")}},
			want:   []string{out + "/other"}, no: []string{out + "/victim", "d/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			outside := filepath.Join(dir, "outside")
			require.NoError(t, os.Mkdir(outside, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "victim"), []byte("mine"), 0o644))
			root := filepath.Join(dir, "root")
			require.NoError(t, os.Mkdir(root, 0o755))
			here := func(s string) string { return strings.ReplaceAll(s, out, outside) }
			for _, l := range c.layers {
				for i := range l {
					l[i].Name, l[i].Linkname = here(l[i].Name), here(l[i].Linkname)
				}
				require.NoError(t, unpack(root, bytes.NewReader(pack(t, l...))))
			}
			for _, name := range c.want {
				fi, err := os.Lstat(filepath.Join(root, here(name)))
				require.NoError(t, err)
				require.True(t, fi.Mode().IsRegular(), name)
			}
			for _, name := range c.no {
				_, err := os.Lstat(filepath.Join(root, here(name)))
				require.ErrorIs(t, err, fs.ErrNotExist, name)
			}
			untouched(t, outside)
		})
	}
	for _, name := range []string{".wh.", ".wh..", ".wh...", "d/.wh...", "d/.wh.../x"} {
		root := t.TempDir()
		_ = unpack(root, bytes.NewReader(pack(t, reg("d/x"), reg(name))))
		require.DirExists(t, root, name)
	}
}

// untouched looks whether the folder beside the tree is as it was.
func untouched(t *testing.T, outside string) {
	t.Helper()
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text, err := os.ReadFile(filepath.Join(outside, "victim"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	fi, err := os.Lstat(filepath.Join(outside, "victim"))
	require.NoError(t, err)
	require.EqualValues(t, 1, fi.Sys().(*syscall.Stat_t).Nlink)
	require.Equal(t, fs.FileMode(0o644), fi.Mode())
}

// An image whose system folders are links, as some distributions have them.
func TestImportAnImageOfLinks(t *testing.T) {
	s := newStore(t)
	img, err := s.Import(t.Context(), "linked", save(t, pack(t,
		folder("nix"), reg("nix/bash"), link("bin/bash", "/nix/bash"), link("etc", "/nix/etc"), reg("etc/passwd"), link("home", "/nix/home"),
		link("var/tmp", "/tmp"), reg("etc/skel/.bashrc"),
	)))
	require.NoError(t, err)
	for _, name := range []string{"nix/etc/passwd", "nix/etc/machine-id", "nix/home/user/.bashrc"} {
		require.FileExists(t, filepath.Join(img.Root, name))
	}
	passwd, err := os.ReadFile(filepath.Join(img.Root, "nix/etc/passwd"))
	require.NoError(t, err)
	require.Contains(t, string(passwd), "user:x:1000:")
	fi, err := os.Stat(filepath.Join(img.Root, "tmp"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSticky|0o777, fi.Mode())
}
