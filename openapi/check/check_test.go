package check_test

import (
	"testing"

	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/openapi/check"
	"github.com/stretchr/testify/require"
)

// small is a document with everything in it that the package knows.
const small = `
security: [{Key: []}]
paths:
  /things/{thingID}:
    parameters: [{$ref: "#/components/parameters/ThingID"}]
    post:
      operationId: makeThing
      x-isthmus-served: true
      parameters:
        - {name: ids, in: query, style: form, explode: false, required: true, schema: {type: array, maxItems: 2, uniqueItems: true, items: {type: integer, format: int32}}}
        - {name: deep, in: query, schema: {type: boolean}}
        - {name: X-Id, in: header, required: true, schema: {type: string, format: uuid}}
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}}}
    get:
      operationId: getThing
      security: []
components:
  parameters:
    ThingID: {name: thingID, in: path, required: true, schema: {type: string, pattern: "^[a-z]+$"}}
  schemas:
    Named: {type: object, required: [name], properties: {name: {type: string, minLength: 2, maxLength: 3}}}
    Thing:
      allOf:
        - {$ref: "#/components/schemas/Named"}
        - type: object
          properties:
            size: {type: integer, format: int64, minimum: 1, maximum: 9}
            weight: {type: number}
            kind: {type: string, enum: [a, b]}
            at: {type: string, format: date-time}
            tags: {type: array, minItems: 1, maxItems: 2, items: {type: string}}
            labels: {type: object, additionalProperties: {type: string}}
            free: {type: object, additionalProperties: true}
            inner: {type: object, required: [on], properties: {on: {type: boolean}}}
            whatever: {}
`

func operation(t *testing.T) *check.Operation {
	t.Helper()
	document, err := check.Load(small)
	require.NoError(t, err)
	op, ok := document.Find("POST", "/things/:thingID")
	require.True(t, ok)
	require.Equal(t, "makeThing", op.ID)
	require.True(t, op.Served)
	require.Equal(t, []string{"Key"}, op.Schemes)
	open, ok := document.Find("GET", "/things/:thingID")
	require.True(t, ok)
	require.Empty(t, open.Schemes)
	require.False(t, open.HasBody())
	return op
}

func TestBody(t *testing.T) {
	op := operation(t)
	for body, want := range map[string]string{
		`{"name":"ab"}`:                             `{"name":"ab"}`,
		`{"name":"éé"}`:                             `{"name":"éé"}`,
		`{"name":"ab","NAME":"x","size":null}`:      `{"name":"ab"}`,
		`{"name":"ab","name":"cd"}`:                 `{"name":"cd"}`,
		`{"name":"ab","size":9,"weight":1e3}`:       `{"name":"ab","size":9,"weight":1e3}`,
		`{"name":"ab","kind":"b","tags":["x","y"]}`: `{"kind":"b","name":"ab","tags":["x","y"]}`,
		`{"name":"ab","labels":{"any":"v"}}`:        `{"labels":{"any":"v"},"name":"ab"}`,
		`{"name":"ab","free":{"x":[1,{"y":null}]}}`: `{"free":{"x":[1,{"y":null}]},"name":"ab"}`,
		`{"name":"ab","inner":{"on":true,"x":1}}`:   `{"inner":{"on":true},"name":"ab"}`,
		`{"name":"ab","whatever":[1,"a"]}`:          `{"name":"ab","whatever":[1,"a"]}`,
		`{"name":"ab","at":"2026-01-02T03:04:05Z"}`: `{"at":"2026-01-02T03:04:05Z","name":"ab"}`,
		" {\"name\":\"ab\"} \n":                     `{"name":"ab"}`,
	} {
		kept, err := op.Body([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, string(kept), body)
	}
	for body, fault := range map[string]string{
		``:                        "the body is required: send a JSON object",
		`{"name":"a"}`:            "name must have at least 2 characters",
		`{"name":"éééé"}`:         "name may have at most 3 characters, not 4",
		`{"name":"ab","size":0}`:  "size must be at least 1",
		`{"name":"ab","size":10}`: "size must be at most 9",
		`{"name":"ab","size":9223372036854775808}`: "size must be a whole number that fits in 64 bits",
		`{"name":"ab","size":1.0}`:                 "size must be a whole number that fits in 64 bits",
		`{"name":"ab","size":true}`:                "size must be a number",
		`{"name":"ab","weight":"1"}`:               "weight must be a number",
		`{"name":"ab","kind":"c"}`:                 "kind must be one of a, b",
		`{"name":"ab","at":"yesterday"}`:           "at must be a time as 2026-01-02T15:04:05Z; in a query a + is written %2B",
		`{"name":"ab","tags":[]}`:                  "tags needs at least 1",
		`{"name":"ab","tags":["a","b","c"]}`:       "tags may hold at most 2, not 3",
		`{"name":"ab","tags":["a",null]}`:          "tags[1] must be a string",
		`{"name":"ab","labels":{"x":1}}`:           "labels.x must be a string",
		`{"name":"ab","free":[]}`:                  "free must be an object",
		`{"name":"ab","inner":{}}`:                 "inner.on is required",
		`{"name":"ab","inner":{"on":"yes"}}`:       "inner.on must be true or false",
		`{"size":1}`:                               "name is required",
	} {
		_, err := op.Body([]byte(body))
		require.EqualError(t, err, fault, body)
	}
	require.Equal(t, []string{"at", "free", "inner.on", "kind", "labels", "name", "size", "tags", "weight", "whatever"}, op.Properties())
}

func TestParameters(t *testing.T) {
	op := operation(t)
	require.NoError(t, op.Path("thingID", "abc"))
	require.EqualError(t, op.Path("thingID", "ABC"), "thingID must match ^[a-z]+$")

	for raw, want := range map[string]string{
		"ids=1":                    "ids=1",
		"ids=1&ids=2&x=y":          "ids=1%2C2",
		"ids=1,1,1&ids=&deep=true": "deep=true&ids=1%2C1%2C1",
	} {
		kept, err := op.Query(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, kept.Encode())
	}
	for raw, fault := range map[string]string{
		"":                          "ids is required in the query",
		"ids=":                      "ids is required in the query",
		"ids=a":                     "ids must be a whole number that fits in 32 bits",
		"ids=1,2&ids=3":             "ids may hold at most 2, not 3",
		"ids=1&deep=yes":            "deep must be true or false",
		"ids=1&deep=":               "deep must be true or false",
		"ids=1&deep=true&deep=true": "deep is given more than once in the query",
		"ids=%":                     "query cannot be read: percent-encode its values",
	} {
		_, err := op.Query(raw)
		require.EqualError(t, err, fault, raw)
	}

	id := "0f0f0f0f-0000-4000-8000-00000000000A"
	require.NoError(t, op.Header(map[string][]string{"X-Id": {id}}))
	for _, bad := range []string{"", "x", id[1:] + "g", "{" + id[2:] + "}", "0f0f0f0f00000-4000-8000-00000000000a"} {
		require.EqualError(t, op.Header(map[string][]string{"X-Id": {bad}}), "header X-Id must be a UUID")
	}
	require.EqualError(t, op.Header(nil), "header X-Id is required")
	require.EqualError(t, op.Header(map[string][]string{"X-Id": {id, id}}), "header X-Id is given more than once")
}

// TestLoadRefusesWhatItDoesNotKnow: a statement that is not enforced must not pass for one that is.
func TestLoadRefusesWhatItDoesNotKnow(t *testing.T) {
	const frame = `{paths: {/a: {get: {operationId: a, parameters: [%]}}}}`
	for _, parameter := range []string{
		`{name: p, in: query, schema: {oneOf: [{type: string}]}}`,
		`{name: p, in: query, schema: {type: array, items: {type: string}}}`,
		`{name: p, in: cookie, schema: {type: string}}`,
		`{name: p, in: query}`,
		`{name: p, in: query, schema: {$ref: "#/components/schemas/None"}}`,
		`{$ref: "#/components/parameters/None"}`,
		`{name: p, in: query, schema: {type: string, pattern: "("}}`,
	} {
		_, err := check.Load(replace(frame, parameter))
		require.Error(t, err, parameter)
	}
	_, err := check.Load("{")
	require.Error(t, err)
}

func replace(frame, with string) string {
	before, after := frame[:len(frame)-len("]}}}}")-1], frame[len(frame)-len("]}}}}"):]
	return before + with + after
}

func TestOwnDocument(t *testing.T) {
	document, err := check.Load(openapi.Document())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, op := range document.Operations() {
		require.NotEmpty(t, op.ID, op.Route)
		require.False(t, seen[op.ID], "%s is there twice", op.ID)
		seen[op.ID] = true
	}
}

func FuzzBody(f *testing.F) {
	document, err := check.Load(small)
	require.NoError(f, err)
	op, _ := document.Find("POST", "/things/:thingID")
	f.Add([]byte(`{"name":"ab","tags":["x"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		kept, err := op.Body(body)
		if err != nil {
			return
		}
		again, err := op.Body(kept)
		require.NoError(t, err)
		require.Equal(t, kept, again)
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		_, err := check.Load(openapi.Document())
		require.NoError(b, err)
	}
}
