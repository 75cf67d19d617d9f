//go:build linux

package modal_test

import (
	"context"
	"testing"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestListsDuringCopies looks at all sandboxes, again and again, while the files of one are copied.
func TestListsDuringCopies(t *testing.T) {
	client, app, image := connect(t, start(t, nil))
	box, err := client.Sandboxes.Create(t.Context(), app, image, &sdk.SandboxCreateParams{MemoryMiB: 256})
	require.NoError(t, err)
	defer func() { _, _ = box.Terminate(context.WithoutCancel(t.Context()), nil) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	copying, copied := context.WithCancel(ctx)
	var both errgroup.Group
	both.Go(func() error {
		defer copied()
		for range 5 {
			if _, err := box.SnapshotFilesystem(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	both.Go(func() error {
		for copying.Err() == nil {
			list, err := client.Sandboxes.List(ctx, &sdk.SandboxListParams{AppID: app.AppID})
			if err != nil {
				return err
			}
			for _, err := range list {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	require.NoError(t, both.Wait())
}
