package images

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// Import brings an image in under a name, which it takes over when it is used already. Path is a folder
// with a root file system, a tar of one (plain, gzip or zstd), or an OCI or Docker image: an archive of it,
// or an OCI layout folder. Of an image's own settings the environment variables are kept; its user, working
// directory and entry point mean nothing here.
func (s *Store) Import(ctx context.Context, name, path string) (Image, error) {
	if err := checkName(name); err != nil {
		return Image{}, err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return Image{}, adapters.Errorf(adapters.KindInvalid, "the image cannot be read: %w", err)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	var id string
	if fi.IsDir() {
		id, err = s.importFolder(ctx, path)
	} else {
		id, err = s.importFile(ctx, path)
	}
	if err != nil {
		return Image{}, err
	}
	if err := s.point(name, id); err != nil {
		return Image{}, err
	}
	s.collect(ctx)
	return s.read(name)
}

func (s *Store) importFolder(ctx context.Context, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(path, "oci-layout")); err == nil {
		folder, err := os.OpenRoot(path)
		if err != nil {
			return "", err
		}
		defer folder.Close()
		return s.importLayers(ctx, rootArchive{folder}, path)
	}
	// What is in a folder cannot be told without reading all of it: each import is an image of its own.
	img := Image{ID: "folder-" + strings.ToLower(rand.Text()[:16]), Source: path}
	return img.ID, s.make(ctx, img, func(root string) error {
		return s.help(ctx, helpCopy, root, strings.NewReader(path))
	})
}

// importFile imports a tar, compressed or not. A compressed one is unpacked into a temporary file first: the
// parts of an image archive are read out of order.
func (s *Store) importFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	plain, err := s.plain(ctx, f)
	if err != nil {
		return "", err
	}
	if plain != f {
		defer plain.Close()
	}
	a, err := indexTar(plain)
	if err != nil {
		return "", adapters.Errorf(adapters.KindInvalid, "%s is not a tar archive: %w", filepath.Base(path), err)
	}
	if a.has("oci-layout") || a.has("manifest.json") {
		return s.importLayers(ctx, a, path)
	}
	h := sha256.New()
	for _, step := range []func() error{
		func() error { _, err := plain.Seek(0, io.SeekStart); return err },
		func() error { _, err := io.Copy(h, canceled{ctx, plain}); return err },
		func() error { _, err := plain.Seek(0, io.SeekStart); return err },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	img := Image{ID: "tar-" + hex.EncodeToString(h.Sum(nil)[:8]), Source: path}
	return img.ID, s.make(ctx, img, func(root string) error { return s.unpack(ctx, root, plain) })
}

// plain returns the uncompressed file: f itself, or a temporary one without a name.
func (s *Store) plain(ctx context.Context, f *os.File) (*os.File, error) {
	r, compressed, err := decompress(canceled{ctx, f})
	if err != nil {
		return nil, err
	}
	if !compressed {
		return f, nil
	}
	defer r.Close()
	temp, err := os.CreateTemp(s.dir, newPrefix)
	if err != nil {
		return nil, err
	}
	if err = os.Remove(temp.Name()); err == nil {
		_, err = io.Copy(temp, r)
	}
	if err != nil {
		return nil, errors.Join(err, temp.Close())
	}
	return temp, nil
}

// importLayers unpacks an OCI or Docker image.
func (s *Store) importLayers(ctx context.Context, a archive, source string) (string, error) {
	m, err := readManifest(a)
	if err != nil {
		return "", adapters.Errorf(adapters.KindInvalid, "the image archive cannot be used: %w", err)
	}
	img := Image{ID: "oci-" + m.id, Source: source, Env: m.env}
	return img.ID, s.make(ctx, img, func(root string) error {
		for _, l := range m.layers {
			if err := s.layer(ctx, root, a, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// layer applies one layer and compares its content with its digest, where it has one.
func (s *Store) layer(ctx context.Context, root string, a archive, l blob) error {
	f, err := a.open(l.name)
	if err != nil {
		return adapters.Errorf(adapters.KindInvalid, "the image archive lacks layer %s", l.name)
	}
	defer f.Close()
	h := sha256.New()
	whole := io.TeeReader(f, h)
	r, _, err := decompress(whole)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := s.unpack(ctx, root, r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, whole); err != nil { // padding behind the end of the tar
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); l.sha256 != "" && sum != l.sha256 {
		return adapters.Errorf(adapters.KindInvalid, "layer %s is damaged: its content has the sum %s", l.name, sum)
	}
	return nil
}
