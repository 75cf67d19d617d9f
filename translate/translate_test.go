package translate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/openapi/check"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/stretchr/testify/require"
)

// kinds are all of adapters.
var kinds = []adapters.Kind{
	adapters.KindInvalid, adapters.KindNotFound, adapters.KindExists, adapters.KindPrecondition, adapters.KindCapacity,
	adapters.KindRateLimited, adapters.KindTeamLimit, adapters.KindQuota, adapters.KindUnavailable, adapters.KindCredentials,
	adapters.KindUnsupported, adapters.KindDeclined, adapters.KindUnknownOutcome, adapters.KindInternal,
}

// TestNoFieldIsSilent holds the table of fields against the document.
func TestNoFieldIsSilent(t *testing.T) {
	document, err := check.Load(openapi.Document())
	require.NoError(t, err)
	var table []string
	for _, field := range translate.Fields() {
		table = append(table, strings.TrimSuffix(field.Name, ".tokens"))
	}
	for _, route := range []string{"/sandboxes", "/v2/sandboxes"} {
		op, ok := document.Find("POST", route)
		require.True(t, ok)
		for _, property := range op.Properties() {
			property = topOf(property)
			require.Contains(t, table, property, "%s has no row in the table of fields", property)
		}
	}
	op, _ := document.Find("POST", "/sandboxes")
	properties := op.Properties()
	for i := range properties {
		properties[i] = topOf(properties[i])
	}
	for _, name := range table {
		require.True(t, slices.Contains(properties, name), "%s is in the table and not in the document", name)
	}
}

// topOf cuts a property down to what the table has rows for: parts of these two are of no interest alone.
func topOf(property string) string {
	for _, whole := range []string{"network.egressProxy", "iam"} {
		if strings.HasPrefix(property, whole+".") {
			return whole
		}
	}
	return property
}

// TestOutageIsNotGone keeps a provider's outage from looking like a sandbox that ended: SDKs read 502 and
// Connect's unavailable so. It also keeps a vendor's 401 from the client.
func TestOutageIsNotGone(t *testing.T) {
	for _, kind := range kinds {
		err := fmt.Errorf("pool a: %w", adapters.Errorf(kind, "words"))
		rest, envd := translate.FailureOf(err), translate.EnvdFailureOf(err)
		require.Equal(t, kind == adapters.KindNotFound, envd.Gone)
		require.Equal(t, kind == adapters.KindNotFound, envd.Status == 502 || envd.Code == "unavailable", kind)
		require.NotContains(t, []int{401, 502}, rest.Status, kind)
		require.Equal(t, "words", rest.Message)
		if slices.Contains([]int{429, 503, 504}, rest.Status) {
			require.NotEmpty(t, rest.Retry, "%s would be repeated by the SDK unasked", kind)
		}
	}
}

func TestFailureOf(t *testing.T) {
	never := translate.FailureOf(&adapters.Error{Kind: adapters.KindCapacity, Code: translate.CodeNeverFits})
	require.Equal(t, 503, never.Status)
	require.Equal(t, translate.RetryNo, never.Retry)
	own := &translate.Failure{Status: 410}
	require.Same(t, own, translate.FailureOf(fmt.Errorf("in: %w", own)))
	late := translate.FailureOf(fmt.Errorf("create: %w", context.DeadlineExceeded))
	require.Equal(t, 504, late.Status)
	require.Equal(t, translate.RetryNo, late.Retry)
	unknown := translate.FailureOf(errors.New("open /secret/path"))
	require.Equal(t, 500, unknown.Status)
	require.NotContains(t, unknown.Message, "/secret/path")
	require.ErrorContains(t, unknown.Err, "/secret/path")
	body, err := json.Marshal(never.Body())
	require.NoError(t, err)
	require.JSONEq(t, `{"code":503,"message":"","error_code":"sandbox_no_compatible_node"}`, string(body))
}

func TestMetadataFilter(t *testing.T) {
	// As the SDKs write it: each part encoded, then a form, then (undone by the server) the query.
	awkward := map[string]string{
		"a b": "c&d=é", "plus+": "1+1=2", "percent": "100%25", "": "empty key", "empty": "", "nl": "a\nb", "ü": "=&=", "semi;": ";",
	}
	form := url.Values{}
	for k, v := range awkward {
		form.Set(url.PathEscape(k), url.PathEscape(v))
	}
	filter, err := translate.MetadataFilter(form.Encode())
	require.NoError(t, err)
	require.Equal(t, awkward, filter)

	for query, want := range map[string]map[string]string{
		"":                nil,
		"user=abc&app=p":  {"user": "abc", "app": "p"},
		"user=a%20b":      {"user": "a b"},
		"user=a+b":        {"user": "a b"},
		"user=a%26b":      {"user": "a&b"},
		"k=v=w":           {"k": "v=w"},
		"k=%252B%252526x": {"k": "+%26x"},
	} {
		filter, err := translate.MetadataFilter(query)
		require.NoError(t, err, query)
		require.Equal(t, want, filter, query)
	}
	for _, query := range []string{"a", "a=1&", "&", "a=%", "a=%25z", "a=1&a=1"} {
		_, err := translate.MetadataFilter(query)
		require.Equal(t, adapters.KindInvalid, adapters.KindOf(err), query)
	}
}

func TestCursorRoundTrip(t *testing.T) {
	place := store.SandboxCursor{StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), ID: "i0"}
	for _, order := range []openapi.OrderDirection{openapi.OrderDirectionAsc, openapi.OrderDirectionDesc} {
		token := translate.Cursor(place, order == openapi.OrderDirectionAsc)
		require.Regexp(t, `^[A-Za-z0-9_-]+$`, token)
		query, err := translate.ListV2("team", openapi.ListSandboxesV2Params{NextToken: &token, Order: &order})
		require.NoError(t, err)
		require.Equal(t, place, *query.After)
	}
}

func TestSandboxID(t *testing.T) {
	for given, want := range map[string]string{"i1": "i1", "i1-6532622b": "i1", "i1-": "i1", "7": "7", "i1-ABC": "i1"} {
		id, err := translate.SandboxID(given)
		require.NoError(t, err, given)
		require.Equal(t, want, id)
	}
	for _, given := range []string{"", "-", "-a", "a-b-c", "a--b", "A", "a_b", "a/b", "a.b", "a b", "ä", "a\x00", strings.Repeat("a", 64)} {
		_, err := translate.SandboxID(given)
		require.Equal(t, adapters.KindInvalid, adapters.KindOf(err), given)
	}
}

func TestHostMaskAndTemplateNames(t *testing.T) {
	limits := translate.Limits{MaxLife: time.Hour}
	for mask, ok := range map[string]bool{
		"localhost": true, "localhost:${PORT}": true, "${PORT}-a.example.com": true, "a.example:8080": true, "127.0.0.1": true,
		"a b": false, "a/b": false, "http://a": false, "a:0": false, "a:65536": false, "a:": false, "ä.de": false, "$PORT": false, "-a": false,
		strings.Repeat("a", 254): false, "a@b": false, "a\r\nb": false,
	} {
		_, err := translate.CreateV2("t", openapi.NewSandboxV2{TemplateID: "base", Network: &openapi.SandboxNetworkConfig{MaskRequestHost: &mask}}, "", limits)
		require.Equal(t, ok, err == nil, mask)
	}
	for name, want := range map[string]string{
		"base": "base", "BASE": "base", "base:default": "base", "base:v1.2": "base:v1.2", "team/base": "team/base",
		"team/base:default": "team/base", "code-interpreter-v1": "code-interpreter-v1",
		"": "", "a/b/c": "", "a:b:c": "", "/a": "", "a/": "", "a:": "", "a b": "", "a.b": "", "ä": "", "a\nb": "",
	} {
		request, err := translate.CreateV2("t", openapi.NewSandboxV2{TemplateID: name}, "", limits)
		require.Equal(t, want != "", err == nil, name)
		require.Equal(t, want, request.Template)
	}
}

func TestDefaultLifeFitsTheLimit(t *testing.T) {
	limits := translate.Limits{MaxLife: time.Minute}
	request, err := translate.CreateV2("t", openapi.NewSandboxV2{TemplateID: "base"}, "", limits)
	require.NoError(t, err)
	require.Equal(t, time.Minute, request.Timeout)
	life, err := translate.ConnectLifetime(nil, limits)
	require.NoError(t, err)
	require.Equal(t, time.Minute, life)
}

func TestNetworkIsShownAsGiven(t *testing.T) {
	off := false
	sb := store.Sandbox{Network: store.Network{AllowPublicTraffic: &off, MaskRequestHost: "a", DenyOut: []string{"0.0.0.0/0"}, AllowInternetAccess: &off}}
	text, err := json.Marshal(translate.SandboxDetail(sb, translate.Access{}))
	require.NoError(t, err)
	require.Contains(t, string(text), `"network":{"allowPublicTraffic":false,"denyOut":["0.0.0.0/0"],"maskRequestHost":"a"}`)
	require.Contains(t, string(text), `"allowInternetAccess":false`)
}

func FuzzMetadataFilter(f *testing.F) {
	f.Add("a=b&c=d")
	f.Fuzz(func(t *testing.T, query string) {
		_, _ = translate.MetadataFilter(query)
		token := query
		_, _ = translate.ListV2("t", openapi.ListSandboxesV2Params{NextToken: &token})
		_, _ = translate.SandboxID(query)
	})
}

// FuzzCursor reads whatever calls itself a token; one that is accepted is written again as the same place.
func FuzzCursor(f *testing.F) {
	place := store.SandboxCursor{StartedAt: time.Unix(1, 5000).UTC(), ID: "i0123456789abcdefghij"}
	f.Add(translate.Cursor(place, false), false)
	f.Add(translate.Cursor(place, true), true)
	f.Add("", false)
	f.Add("====", true)
	f.Fuzz(func(t *testing.T, token string, ascending bool) {
		order := openapi.OrderDirectionDesc
		if ascending {
			order = openapi.OrderDirectionAsc
		}
		query, err := translate.ListV2("t", openapi.ListSandboxesV2Params{NextToken: &token, Order: &order})
		if err != nil {
			require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))
			return
		}
		if token == "" {
			return
		}
		written := translate.Cursor(*query.After, ascending)
		again, err := translate.ListV2("t", openapi.ListSandboxesV2Params{NextToken: &written, Order: &order})
		require.NoError(t, err)
		require.Equal(t, query, again)
	})
}
