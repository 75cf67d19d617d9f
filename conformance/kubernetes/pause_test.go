package kubernetes

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testPause pauses and resumes a sandbox over REST: what was changed anywhere in its files comes back,
// and nothing runs while it is paused. A pool without a storage class refuses by name.
func testPause(t *testing.T, c *cluster) {
	without := newFacade(t, access(t))
	id := without.create()
	status, text := without.call(http.MethodPost, "/sandboxes/"+id+"/pause", "", nil)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "pool cluster cannot pause sandboxes")
	without.runs(id)

	f := newFacade(t, c, "storage_class: "+volumes(t, c))
	id = f.create()
	f.says(id, "/bin/bash", "-ec", `
		echo kept >/home/user/file; ln /home/user/file /srv/second; chown user:user /srv/second; chmod 4711 /srv/second
		rm /etc/debian_version; echo more >>/etc/profile; mkdir -p /opt/tool/bin; ln -s /opt/tool/bin /usr/local/tool
		head -c 20M /dev/urandom >/var/large; sha256sum /var/large >/var/sum`)
	f.begins(id, "while :; do date +%s%N >>/tmp/ticks; done")
	began := time.Now()
	status, text = f.call(http.MethodPost, "/sandboxes/"+id+"/pause", "", nil)
	require.Equal(t, http.StatusNoContent, status, text)
	took := time.Since(began)
	require.Empty(t, c.pods(t), "a paused sandbox has a pod")
	require.Len(t, c.claims(t), 1)
	var shown struct{ State string }
	status, text = f.call(http.MethodGet, "/sandboxes/"+id, "", &shown)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, "paused", shown.State)

	began = time.Now()
	status, text = f.call(http.MethodPost, "/sandboxes/"+id+"/connect", `{"timeout":600}`, nil)
	require.Contains(t, []int{http.StatusOK, http.StatusCreated}, status, text)
	fmt.Printf("pause with 20 MiB changed: %v, resume: %v\n", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	out := f.says(id, "/bin/bash", "-ec", `
		cat /home/user/file; stat -c '%a %U %h' /srv/second; test ! -e /etc/debian_version; tail -n 1 /etc/profile
		readlink /usr/local/tool; sha256sum -c /var/sum; tail -c 1 /tmp/ticks | od -An -c | tr -d ' '; pgrep -fc 'date [+]' || true`)
	require.Equal(t, "kept\n4711 user 2\nmore\n/opt/tool/bin\n/var/large: OK\n\\n\n0\n", out)
	status, text = f.call(http.MethodDelete, "/sandboxes/"+id, "", nil)
	require.Equal(t, http.StatusNoContent, status, text)
	require.Empty(t, c.claims(t), "a volume was left")
}
