package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// helperRole makes the test binary the helper of its own tests.
const helperRole = "IMAGES_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperRole) == "" {
		os.Exit(m.Run())
	}
	if err := Help(context.Background(), os.Args[1], os.Args[2], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newStore(t *testing.T) *Store {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	s, err := Open(dir, Options{Helper: []string{"/usr/bin/env", helperRole + "=1", self}})
	require.NoError(t, err)
	t.Cleanup(func() { // an ordinary user's images have files of other owners
		all, err := filepath.Glob(filepath.Join(dir, "*-*"))
		require.NoError(t, err)
		for _, d := range all {
			require.NoError(t, s.remove(context.Background(), d))
		}
	})
	return s
}

type entry = tar.Header

// pack makes a tar; the content of every file is its name.
func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			e.Size = int64(len(e.Name))
		}
		require.NoError(t, w.WriteHeader(&e))
		if e.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, e.Name)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func reg(name string) entry    { return entry{Name: name, Typeflag: tar.TypeReg, Mode: 0o755} }
func folder(name string) entry { return entry{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }
func link(name, to string) entry {
	return entry{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
}

// small is a root file system as small as can be.
func small() []entry {
	return []entry{
		folder("usr"), folder("usr/bin"), reg("usr/bin/bash"), link("bin", "usr/bin"), folder("etc"), reg("etc/old"),
		{Name: "usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755},
		{Name: "var/hard", Typeflag: tar.TypeLink, Linkname: "etc/old"},
		{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		{Name: "srv/mine", Typeflag: tar.TypeReg, Mode: 0o600, Uid: 33, Gid: 33},
	}
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func save(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, os.WriteFile(path, b, 0o644))
	return path
}

func TestImportTar(t *testing.T) {
	s, plain := newStore(t), pack(t, small()...)
	for name, b := range map[string][]byte{"plain": plain, "gzip": gzipped(t, plain)} {
		img, err := s.Import(t.Context(), name, save(t, b))
		require.NoError(t, err)
		require.Equal(t, name, img.Name)
		fi, err := os.Stat(filepath.Join(img.Root, "bin/su"))
		require.NoError(t, err)
		require.Equal(t, fs.ModeSetuid|0o755, fi.Mode(), "the set-user-id bit is kept")
		require.NoFileExists(t, filepath.Join(img.Root, "dev/null"))
		passwd, err := os.ReadFile(filepath.Join(img.Root, "etc/passwd"))
		require.NoError(t, err)
		require.Contains(t, string(passwd), "user:x:1000:1000::/home/user:/bin/bash\n")
		require.DirExists(t, filepath.Join(img.Root, "home/user"))
		if fi, err = os.Stat(filepath.Join(img.Root, "srv/mine")); os.Getuid() == 0 {
			require.NoError(t, err)
			require.EqualValues(t, 33, fi.Sys().(*syscall.Stat_t).Uid)
		}
	}
	again, err := s.Import(t.Context(), "other", save(t, plain))
	require.NoError(t, err)
	first, err := s.Resolve("plain")
	require.NoError(t, err)
	require.Equal(t, first.Root, again.Root, "the same content is kept once")
}

func TestImportFolder(t *testing.T) {
	s, from := newStore(t), t.TempDir()
	require.NoError(t, unpack(from, bytes.NewReader(pack(t, folder("usr"), folder("usr/bin"), reg("usr/bin/bash"), link("bin", "usr/bin")))))
	img, err := s.Import(t.Context(), "mine", from)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(img.Root, "bin/bash"))
}

// ociImage makes an OCI layout of the layers as the files of a tar.
func ociImage(t *testing.T, layers ...[]byte) (files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	add := func(b []byte) map[string]any {
		sum := sha256.Sum256(b)
		name := hex.EncodeToString(sum[:])
		files["blobs/sha256/"+name] = b
		return map[string]any{"digest": "sha256:" + name, "size": len(b)}
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b
	}
	var list []any
	for _, l := range layers {
		list = append(list, add(l))
	}
	config := add(encode(map[string]any{"config": map[string]any{"Env": []string{"A=b=c", "PATH=/bin"}}}))
	m := add(encode(map[string]any{"config": config, "layers": list}))
	files["index.json"] = encode(map[string]any{"manifests": []any{m}})
	return files
}

func tarOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestImportOCI(t *testing.T) {
	upper := gzipped(t, pack(t, reg("etc/.wh.old"), reg("srv/.wh..wh..opq"), reg("srv/new"), reg("etc/added")))
	files := ociImage(t, gzipped(t, pack(t, small()...)), upper)
	layout := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(layout, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(layout, name), content, 0o644))
	}
	for name, path := range map[string]string{"archive": save(t, tarOf(t, files)), "compressed": save(t, gzipped(t, tarOf(t, files))), "layout": layout} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			img, err := s.Import(t.Context(), "mine", path)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"A": "b=c", "PATH": "/bin"}, img.Env)
			require.NoFileExists(t, filepath.Join(img.Root, "etc/old"))
			require.FileExists(t, filepath.Join(img.Root, "var/hard"), "the other link to it stays")
			require.FileExists(t, filepath.Join(img.Root, "etc/added"))
			require.FileExists(t, filepath.Join(img.Root, "srv/new"))
			require.NoFileExists(t, filepath.Join(img.Root, "srv/mine"))
		})
	}
}

func TestImportDocker(t *testing.T) {
	config := []byte(`{"config":{"Env":["A=1"]}}`)
	sum := sha256.Sum256(config)
	name := hex.EncodeToString(sum[:]) + ".json"
	s := newStore(t)
	img, err := s.Import(t.Context(), "mine", save(t, tarOf(t, map[string][]byte{
		name: config, "x/layer.tar": pack(t, small()...), "manifest.json": []byte(`[{"Config":"` + name + `","Layers":["x/layer.tar"]}]`),
	})))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1"}, img.Env)
	require.FileExists(t, filepath.Join(img.Root, "bin/bash"))
}

func TestImportRefuses(t *testing.T) {
	damaged := ociImage(t, pack(t, small()...))
	for name := range damaged {
		if bytes.Contains(damaged[name], []byte("usr/bin/bash")) {
			damaged[name] = pack(t, append(small(), reg("etc/evil"))...)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"no bash":             {pack(t, reg("etc/x")), "has no /bin/bash"},
		"not a tar":           {bytes.Repeat([]byte("no"), 2000), "not a tar archive"},
		"links in a circle":   {pack(t, append(small(), link("a", "b"), link("b", "/a"), reg("a/x"))...), "too many levels"},
		"a hard link out":     {pack(t, append(small(), link("esc", filepath.Dir(outside)), entry{Name: "h", Typeflag: tar.TypeLink, Linkname: "esc/outside"})...), "no such file"},
		"a damaged layer":     {tarOf(t, damaged), "is damaged"},
		"an archive of none":  {tarOf(t, map[string][]byte{"oci-layout": nil, "index.json": []byte(`{"manifests":[]}`)}), "save exactly one"},
		"a digest with a way": {tarOf(t, map[string][]byte{"oci-layout": nil, "index.json": []byte(`{"manifests":[{"digest":"sha256:../../x"}]}`)}), "not one of SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			_, err := s.Import(t.Context(), "mine", save(t, c.b))
			require.ErrorContains(t, err, c.want)
			left, err := filepath.Glob(filepath.Join(s.dir, "*-*"))
			require.NoError(t, err)
			require.Empty(t, left, "nothing is left of it")
			_, err = s.Resolve("mine")
			require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
		})
	}
	s := newStore(t)
	for _, name := range []string{"", "../x", "A", ".x", "a/b"} {
		_, err := s.Import(t.Context(), name, outside)
		require.Equal(t, adapters.KindInvalid, adapters.KindOf(err), name)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, unpack(root, bytes.NewReader(pack(t, reg("../../up"), reg("/abs")))))
	require.NoFileExists(t, filepath.Join(dir, "up"))
	require.FileExists(t, filepath.Join(root, "up"))
	require.FileExists(t, filepath.Join(root, "abs"))
}

func TestUnpackReplaces(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, unpack(root, bytes.NewReader(pack(t, folder("d"), reg("d/x"), reg("f"), link("l", "d")))))
	require.NoError(t, unpack(root, bytes.NewReader(pack(t, reg("d"), folder("f"), reg("f/y"), reg("l")))))
	require.FileExists(t, filepath.Join(root, "d"))
	require.FileExists(t, filepath.Join(root, "f/y"))
	fi, err := os.Lstat(filepath.Join(root, "l"))
	require.NoError(t, err)
	require.True(t, fi.Mode().IsRegular(), "a link is replaced, not followed")
}

func TestResolve(t *testing.T) {
	s := newStore(t)
	_, err := s.Resolve("base")
	require.ErrorContains(t, err, "isthmus images build")
	_, err = s.Resolve("mine")
	require.ErrorContains(t, err, "there is no image yet")
	for _, name := range []string{Base, "zeta"} {
		_, err := s.Import(t.Context(), name, save(t, pack(t, small()...)))
		require.NoError(t, err)
	}
	for _, name := range []string{"base", "node", "python", "zeta"} {
		img, err := s.Resolve(name)
		require.NoError(t, err, name)
		require.DirExists(t, img.Root)
	}
	for _, name := range []string{"other", "../names/base", ""} {
		_, err = s.Resolve(name)
		require.Equal(t, adapters.KindNotFound, adapters.KindOf(err))
		require.ErrorContains(t, err, "there are base, node, python, zeta")
	}
	_, err = s.Resolve("other", "tools")
	require.ErrorContains(t, err, "there are base, node, python, tools, zeta")
	list, err := s.List()
	require.NoError(t, err)
	require.Len(t, list, 2)
}

func TestManyAtOnce(t *testing.T) {
	s, path := newStore(t), save(t, pack(t, small()...))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := s.Import(t.Context(), "mine", path)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := filepath.Glob(filepath.Join(s.dir, "*-*"))
	require.NoError(t, err)
	require.Len(t, left, 1)

	unlock, err := s.lock(t.Context())
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Import(ctx, "mine", path)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSweepRemovesWhatACrashLeft(t *testing.T) {
	s := newStore(t)
	left := filepath.Join(s.dir, newPrefix+"1", "root")
	require.NoError(t, os.MkdirAll(left, 0o755))
	_, err := s.Import(t.Context(), "mine", save(t, pack(t, small()...)))
	require.NoError(t, err)
	require.NoDirExists(t, left)
}

func TestTools(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sudo")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o644))
	layer, err := Tools(filepath.Join(dir, "tools"), program)
	require.NoError(t, err)
	fi, err := os.Stat(filepath.Join(layer, "usr/bin/sudo"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeSetuid|0o755, fi.Mode())
	for _, d := range []string{"", "usr", "usr/bin"} {
		fi, err := os.Stat(filepath.Join(layer, d))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o755), fi.Mode().Perm())
	}
	again, err := Tools(filepath.Join(dir, "tools"), program)
	require.NoError(t, err)
	require.Equal(t, layer, again)
	_, err = Tools(dir, filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "make build")
}

func TestSources(t *testing.T) {
	etc := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(etc, "sources.list.d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(etc, "sources.list"), []byte("# x\ndeb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main\ndeb-src http://a.example/debian bookworm main\ndeb http://v.example stable main\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(etc, "sources.list.d", "d.sources"), []byte("Types: deb deb-src\n# c\nURIs: http://b.example/debian\nSuites: bookworm trixie bookworm-updates\nComponents: main\nSigned-By: /d.gpg\n\nTypes: deb\nURIs: http://v.example\nSuites: nodistro\nComponents: main\n\nEnabled: no\nTypes: deb\nURIs: http://c.example\nSuites: bookworm\n"), 0o644))
	got, err := sources(etc, release{"debian", "bookworm"})
	require.NoError(t, err)
	require.Equal(t, "Types: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: http://b.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /d.gpg\n", got)
	_, err = sources(etc, release{"debian", "sid"})
	require.ErrorContains(t, err, "no source of sid")
	_, err = sources(etc, release{"fedora", ""})
	require.ErrorContains(t, err, "isthmus images import")
}

// TestBuild builds the real base image, for a minute and over the network.
func TestBuild(t *testing.T) {
	if os.Getenv("ISTHMUS_TEST_BUILD") == "" {
		t.Skip("takes a minute and Debian's packages: set ISTHMUS_TEST_BUILD=1")
	}
	s := newStore(t)
	img, err := s.Build(t.Context(), Base, os.Stderr)
	require.NoError(t, err)
	for _, f := range []string{"bin/bash", "usr/bin/python3", "usr/bin/python", "usr/bin/git", "home/user/.bashrc"} {
		require.FileExists(t, filepath.Join(img.Root, f))
	}
	again, err := s.Build(t.Context(), "second", nil)
	require.NoError(t, err)
	require.Equal(t, img.Root, again.Root)
}
