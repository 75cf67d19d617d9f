package daemon

import (
	"net"
	"net/http"
	"net/netip"
	"time"
)

// reachTime bounds one try to open a connection: what is dropped on the way never answers.
const reachTime = time.Second

// serveReach answers 204 when the box can open a TCP connection to ?address=IP:PORT, else 504: so the facade sees
// whether what it took away is away.
func (d *Daemon) serveReach(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	address, err := netip.ParseAddrPort(r.URL.Query().Get("address"))
	if err != nil {
		writeError(w, http.StatusBadRequest, "address must be IP:PORT")
		return
	}
	conn, err := (&net.Dialer{Timeout: reachTime}).DialContext(r.Context(), "tcp", address.String())
	if err != nil {
		writeError(w, http.StatusGatewayTimeout, "there is no way to "+address.String())
		return
	}
	_ = conn.Close()
	w.WriteHeader(http.StatusNoContent)
}
