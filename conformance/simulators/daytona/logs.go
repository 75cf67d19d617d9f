package daytona

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// frameSize is the most of a log that one frame holds, in bytes.
const frameSize = 4096

// serveLogs answers the output of a command so far, or follows it over a WebSocket. What a client is given depends on
// the version that it says it has.
func serveLogs(w http.ResponseWriter, c *toolCall) error {
	_, one, err := c.sessionOf()
	if err != nil {
		return err
	}
	if c.URL.Query().Get("follow") == "true" {
		return followLogs(w, c, one)
	}
	all, out, failed := one.log.texts()
	if sdkVersion(c.Request) >= 167 {
		answer(w, http.StatusOK, map[string]any{"output": all, "stdout": out, "stderr": failed})
		return nil
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte(all))
	return nil
}

// sdkVersion is the middle number of a client's version 0.N.P, which it says in a header or, in a browser, in a
// subprotocol; 0: it does not say.
func sdkVersion(r *http.Request) int {
	text := r.Header.Get("X-Daytona-SDK-Version")
	for _, offered := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if version, is := strings.CutPrefix(strings.TrimSpace(offered), "X-Daytona-SDK-Version~"); is {
			text = version
		}
	}
	parts := strings.Split(text, ".")
	if len(parts) < 2 {
		return 0
	}
	middle, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return middle
}

// followLogs sends the log from its beginning until the command has ended. Frames end anywhere, also within a mark.
func followLogs(w http.ResponseWriter, c *toolCall, one *command) error {
	ws, err := websocket.Accept(w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: offered(c.Request)})
	if err != nil {
		return nil //nolint:nilerr // it has been answered
	}
	defer func() { _ = ws.CloseNow() }()
	marks := sdkVersion(c.Request) >= 27 || c.Header.Get("X-Daytona-Split-Output") == "true"
	size := frameSize
	if c.frames {
		size = 1
	}
	ctx := ws.CloseRead(c.Context())
	for position := 0; ; {
		text, over, changed := one.log.from(position, marks)
		for ; len(text) > 0; text = text[min(size, len(text)):] {
			if err := writeFrame(ctx, ws, text[:min(size, len(text))]); err != nil {
				return nil //nolint:nilerr // the client has left
			}
			position += min(size, len(text))
		}
		if over {
			_ = ws.Close(websocket.StatusNormalClosure, "")
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func writeFrame(ctx context.Context, ws *websocket.Conn, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return ws.Write(ctx, websocket.MessageBinary, text)
}

// offered are the subprotocols of a handshake: one of them must be echoed.
func offered(r *http.Request) []string {
	var all []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for word := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(word))
		}
	}
	return all
}
