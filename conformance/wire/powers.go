package wire

import "strings"

// powerCases try what only some places can: each is served as it is on E2B, or refused by name.
func powerCases() []Case {
	return []Case{
		{"powers/pause, connect and resume", pauseAndResume},
		{"powers/a paused sandbox is killed", killPaused},
		{"powers/snapshot, create and delete", snapshotAndCreate},
		{"powers/network of a running sandbox", changeNetwork},
		{"powers/unknown sandboxes", powersOfStrangers},
	}
}

// has sends a call that is served with the status, or else refused with 400 and the operation's name, or with 501 where
// the whole server lacks it.
func (s *Suite) has(t T, status int, operation string, c call) (answer, bool) {
	t.Helper()
	got := s.do(t, c)
	if got.status == 400 || got.status == 501 {
		refused := decode[struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}](t, got.body)
		equal(t, got.status, refused.Code, "the code of the refusal")
		that(t, strings.Contains(refused.Message, operation), "the refusal does not name %s: %s", operation, refused.Message)
		return got, false
	}
	equal(t, status, got.status, c.method+" "+c.path)
	return got, got.status == status
}

func pauseAndResume(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	path := "/sandboxes/" + box.SandboxID
	if _, can := s.has(t, 204, "pauseSandbox", s.post(path+"/pause", "")); !can {
		equal(t, "running", s.detail(t, box.SandboxID).State, "state after a refused pause")
		return
	}
	paused := s.detail(t, box.SandboxID)
	equal(t, "paused", paused.State, "state")
	equal(t, box.EnvdAccessToken, paused.EnvdAccessToken, "the token of a paused sandbox")
	s.expect(t, 409, s.post(path+"/pause", "{}"))
	s.expect(t, 404, s.post(path+"/timeout", `{"timeout":60}`))
	s.expect(t, 404, s.post(path+"/refreshes", ""))
	s.expect(t, 404, s.post(path+"/snapshots", "{}"))
	s.expect(t, 502, call{method: "GET", path: "/health", header: routeTo(box), toSandbox: true})

	resumed := decode[sandbox](t, s.expect(t, 201, s.post(path+"/connect", `{"timeout":120}`)).body)
	equal(t, box.EnvdAccessToken, resumed.EnvdAccessToken, "the token is the same over a pause")
	d := s.detail(t, box.SandboxID)
	equal(t, "running", d.State, "state")
	about(t, d, 120)
	got := s.do(t, call{method: "GET", path: "/health", header: routeTo(box), toSandbox: true})
	that(t, got.status/100 == 2, "its envd answers /health with %d", got.status)
	s.expect(t, 200, s.post("/v2"+path+"/connect", ""))
	s.expect(t, 409, s.post(path+"/resume", ""))

	s.expect(t, 204, s.post(path+"/pause", `{"memory":false}`))
	s.expect(t, 201, s.post(path+"/resume", `{"timeout":90}`))
	about(t, s.detail(t, box.SandboxID), 90)
}

func killPaused(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	path := "/sandboxes/" + box.SandboxID
	if _, can := s.has(t, 204, "pauseSandbox", s.post(path+"/pause", "{}")); !can {
		return
	}
	s.expect(t, 204, call{method: "DELETE", path: path, header: s.key()})
	s.expect(t, 404, call{method: "DELETE", path: path, header: s.key()})
	s.expect(t, 404, s.post(path+"/connect", `{"timeout":60}`))
}

func snapshotAndCreate(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	got, can := s.has(t, 201, "createSnapshot", s.post("/sandboxes/"+box.SandboxID+"/snapshots", "{}"))
	if !can {
		return
	}
	taken := decode[struct {
		SnapshotID string   `json:"snapshotID"`
		Names      []string `json:"names"`
	}](t, got.body)
	that(t, taken.SnapshotID != "" && taken.Names != nil, "snapshotID and names: %s", clip(got.body))
	equal(t, "running", s.detail(t, box.SandboxID).State, "it runs on; state")
	list := s.expect(t, 200, call{method: "GET", path: "/snapshots?sandboxID=" + box.SandboxID, header: s.key()})
	that(t, strings.Contains(string(list.body), taken.SnapshotID), "the snapshot is not listed: %s", clip(list.body))
	_, killCopy := s.create(t, "/v2/sandboxes", map[string]any{"templateID": taken.SnapshotID})
	killCopy()
	remove := call{method: "DELETE", path: "/templates/" + strings.ReplaceAll(taken.SnapshotID, ":", "%3A"), header: s.key()}
	s.expect(t, 204, remove)
	s.expect(t, 404, remove)
	s.expect(t, 404, s.post("/v2/sandboxes", encode(map[string]any{"templateID": taken.SnapshotID})))
}

func changeNetwork(t T, s *Suite) {
	box, kill := s.create(t, "/v2/sandboxes", map[string]any{})
	defer kill()
	put := func(body string) call {
		return call{method: "PUT", path: "/sandboxes/" + box.SandboxID + "/network", header: s.key(), body: body}
	}
	if _, can := s.has(t, 204, "updateSandboxNetwork", put(`{"denyOut":["0.0.0.0/0"]}`)); !can {
		return
	}
	detail := s.expect(t, 200, call{method: "GET", path: "/sandboxes/" + box.SandboxID, header: s.key()})
	that(t, strings.Contains(string(detail.body), "0.0.0.0/0"), "the network is not shown: %s", clip(detail.body))
	s.expect(t, 400, put(`{"allowOut":["name.example"]}`))
	s.expect(t, 204, put(`{}`))
}

func powersOfStrangers(t T, s *Suite) {
	const nobody = "/sandboxes/inobody00000000000000"
	for _, c := range []call{
		s.post(nobody+"/pause", ""), s.post(nobody+"/resume", ""), s.post(nobody+"/snapshots", "{}"),
		{method: "PUT", path: nobody + "/network", header: s.key(), body: "{}"},
		{method: "DELETE", path: "/templates/no-such-snapshot", header: s.key()},
	} {
		s.expect(t, 404, c)
	}
}
