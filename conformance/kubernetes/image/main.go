// Command image writes an OCI archive of one layer, which a container runtime imports: images for tests, without a
// registry. Usage: image NAME ARCHIVE PROGRAM FOLDER... PROGRAM is the one that is started, or empty. Later folders
// lie above earlier ones.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// part is a descriptor of the OCI image specification.
type part struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const media = "application/vnd.oci.image."

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: image NAME ARCHIVE PROGRAM FOLDER...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(name, archive, program string, folders []string) (err error) {
	layer, err := os.CreateTemp(filepath.Dir(archive), ".layer-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layer.Close(), os.Remove(layer.Name())) }()
	sum := sha256.New()
	if err := pack(io.MultiWriter(layer, sum), folders); err != nil {
		return err
	}
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	a := &layout{tar.NewWriter(out)}
	config, err := a.document(media+"config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": settings(program),
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := a.document(media+"manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": media + "manifest.v1+json", "config": config,
		"layers": []part{{MediaType: media + "layer.v1.tar", Digest: digest, Size: size}},
	})
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := a.file(blob(digest), size, layer); err != nil {
		return err
	}
	return a.end(name, manifest)
}

// settings are the image's own for its containers.
func settings(program string) map[string]any {
	all := map[string]any{"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	if program != "" {
		all["Entrypoint"] = []string{program}
	}
	return all
}

// layout is an archive of the OCI image layout.
type layout struct{ *tar.Writer }

func blob(digest string) string { return "blobs/sha256/" + digest[len("sha256:"):] }

func (a *layout) file(name string, size int64, content io.Reader) error {
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(a, content)
	return err
}

// document adds a JSON document as a blob.
func (a *layout) document(mediaType string, document any) (part, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return part{}, err
	}
	sum := sha256.Sum256(text)
	p := part{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(text))}
	return p, a.file(blob(p.Digest), p.Size, bytes.NewReader(text))
}

// end names the image, in the words of the specification and in those of containerd.
func (a *layout) end(name string, manifest part) error {
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": media + "index.v1+json", "manifests": []part{manifest}})
	if err != nil {
		return err
	}
	version := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return errors.Join(a.file("index.json", int64(len(index)), bytes.NewReader(index)), a.file("oci-layout", int64(len(version)), bytes.NewReader(version)), a.Close())
}

// pack writes the folders as one layer. A file of a later folder comes after the one that it replaces.
func pack(out io.Writer, folders []string) error {
	w := tar.NewWriter(out)
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == folder {
				return err
			}
			return add(w, folder, path, entry)
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

func add(w *tar.Writer, folder, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil || info.Mode()&fs.ModeSocket != 0 {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(folder, path); err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		header.Uid, header.Gid = int(stat.Uid), int(stat.Gid)
	}
	header.Uname, header.Gname = "", ""
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	_, err = io.Copy(w, content)
	return err
}
