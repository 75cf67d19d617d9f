package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// refusal is one bad request and what must be answered to it.
type refusal struct {
	name string
	call call
	// status is what is right; more than one where the facts leave a choice.
	status []int
	// code is the Connect code that is right; empty: the code is the integer status. Several are separated by |.
	code string
	// message matches the text; empty: any text that is not empty.
	message string
	// inStream: the refusal comes in the end frame of a stream, with status 200.
	inStream bool
	// byHost: the row needs a server that names a domain for its sandboxes.
	byHost bool
	// wordless: the answer has no JSON body, as connect-go answers 404, 405 and 415 on its own routes.
	wordless bool
}

// refusals makes a case of every row. Rows are made when the case runs, because they name the suite's sandboxes.
func refusals(class string, rows func(*Suite) []refusal) []Case {
	var cases []Case
	for number, row := range rows(&Suite{}) {
		cases = append(cases, Case{
			Name: "refuses/" + class + "/" + row.name,
			Run: func(t T, s *Suite) {
				row := rows(s)[number]
				if row.byHost && s.subject.host(1) == "" {
					t.Logf("the server names no domain")
					return
				}
				before := s.state(t)
				check(t, s, row)
				equal(t, before, s.state(t), "a refused request must change nothing; the state of the team")
			},
		})
	}
	return cases
}

// status says which status is right for a row.
func status(codes ...int) []int { return codes }

// check sends a bad request and looks at the answer.
func check(t T, s *Suite, row refusal) {
	t.Helper()
	got := s.do(t, row.call)
	that(t, slices.Contains(row.status, got.status), "got status %d, want %v: %s", got.status, row.status, clip(got.body))
	that(t, got.header.Get("Content-Length") != "0" || row.wordless, "an error without a body")
	if row.wordless {
		return
	}
	body := got.body
	if row.inStream {
		equal(t, "application/connect+json", got.header.Get("Content-Type"), "content type")
		body = lastError(t, got.body)
	} else {
		that(t, strings.HasPrefix(got.header.Get("Content-Type"), "application/json"), "content type %q: an error must be JSON", got.header.Get("Content-Type"))
	}
	refused := decode[struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}](t, body)
	codes := []string{fmt.Sprint(got.status)}
	if row.code != "" {
		codes = nil
		for code := range strings.SplitSeq(row.code, "|") {
			codes = append(codes, encode(code))
		}
	}
	that(t, slices.Contains(codes, string(refused.Code)), "got code %s, want %s: %s", refused.Code, strings.Join(codes, " or "), clip(body))
	that(t, refused.Message != "", "the message is empty: %s", clip(body))
	if row.message != "" {
		that(t, regexp.MustCompile(row.message).MatchString(refused.Message), "message %q does not match %q", refused.Message, row.message)
	}
}

// lastError finds the error in the end frame of a stream.
func lastError(t T, body []byte) []byte {
	t.Helper()
	from := strings.NewReader(string(body))
	for {
		got, err := readFrame(from)
		if err != nil {
			t.Errorf("the stream has no end frame (%v): %q", err, clip(body))
			t.FailNow()
		}
		if got.flags&flagEnd == 0 {
			t.Errorf("a message came before the refusal: %s", clip(got.message))
			continue
		}
		end := decode[struct {
			Error json.RawMessage `json:"error"`
		}](t, got.message)
		that(t, end.Error != nil, "the stream ended well: %s", clip(got.message))
		_, err = from.ReadByte()
		that(t, err == io.EOF, "something follows the end frame")
		return end.Error
	}
}
