package daytona

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

// answered is an answer of the server.
func answered(status int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// TestOneStatusSaysManyThings tells lack of room, a used up account and a wrong request apart by their texts.
func TestOneStatusSaysManyThings(t *testing.T) {
	for _, one := range []struct {
		status  int
		message string
		want    adapters.Kind
	}{
		{400, "No available runners", adapters.KindCapacity},
		{400, "No available runners with GPU type H100", adapters.KindCapacity},
		{400, "Total CPU limit exceeded. Maximum allowed: 10.", adapters.KindQuota},
		{400, "Total memory limit exceeded. Maximum allowed: 20GiB.", adapters.KindQuota},
		{400, "Total disk limit exceeded. Maximum allowed: 30GiB.", adapters.KindQuota},
		{400, "Total GPU limit exceeded. Maximum allowed: 0.", adapters.KindQuota},
		{400, "CPU request 16 exceeds maximum allowed per sandbox (4).", adapters.KindUnsupported},
		{400, "bad request: failed to get runner info: Is the Sandbox started?", adapters.KindPrecondition},
		{400, "Snapshot mine not found. Did you add it through the Daytona Dashboard?", adapters.KindNotFound},
		{400, "labels must be an object", adapters.KindInvalid},
		{401, "Invalid credentials", adapters.KindCredentials},
		{402, "Payment required", adapters.KindQuota},
		{403, "Organization is suspended: Please add a payment method", adapters.KindQuota},
		{403, "Region eu is not available to the organization", adapters.KindUnsupported},
		{403, "Access denied", adapters.KindCredentials},
		{404, "Sandbox not found", adapters.KindNotFound},
		{404, "Cannot POST /api/sandbox/x/ttl/5", adapters.KindUnavailable},
		{409, "Sandbox with name x already exists", adapters.KindExists},
		{409, "Sandbox state change in progress", adapters.KindPrecondition},
		{410, "session has ended", adapters.KindNotFound},
		{422, "Operation is not supported for sandbox class container", adapters.KindUnsupported},
		{429, "ThrottlerException: Too Many Requests", adapters.KindRateLimited},
		{418, "something new", adapters.KindInvalid},
		{500, "Internal server error", adapters.KindUnknownOutcome},
		{502, "Bad gateway", adapters.KindUnknownOutcome},
	} {
		t.Run(strconv.Itoa(one.status)+" "+one.message, func(t *testing.T) {
			err := failure(answered(one.status, `{"statusCode":`+strconv.Itoa(one.status)+`,"message":"`+one.message+`"}`), true)
			require.Equal(t, one.want, adapters.KindOf(err))
			require.NotEmpty(t, err.Error())
		})
	}
}

func TestAMessageMayBeSeveral(t *testing.T) {
	err := failure(answered(400, `{"statusCode":400,"message":["No available runners","try again"]}`), true)
	require.Equal(t, adapters.KindCapacity, adapters.KindOf(err))
}

func TestThatItFailedElsewhereIsNoProof(t *testing.T) {
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(failure(answered(503, "<html>"), true)))
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(failure(answered(503, "<html>"), false)))
}

// TestAProxyIsNotTheServer reads what is not plainly the server's: no proof that a sandbox is gone, nor that none was made.
func TestAProxyIsNotTheServer(t *testing.T) {
	for _, body := range []string{"", "<html>404</html>", `{"message":"no Route matched with those values"}`, `{"message":"Snapshot x not found"}`, `{"error":"already exists"}`, `null`} {
		for _, status := range []int{400, 402, 404, 405, 409, 410, 413, 418, 422, 502} {
			require.Equal(t, adapters.KindUnavailable, adapters.KindOf(failure(answered(status, body), false)), "%d %s", status, body)
			require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(failure(answered(status, body), true)), "%d %s", status, body)
		}
		for status, want := range map[int]adapters.Kind{401: adapters.KindCredentials, 403: adapters.KindCredentials, 429: adapters.KindRateLimited} {
			require.Equal(t, want, adapters.KindOf(failure(answered(status, body), true)), "%d %s", status, body)
		}
	}
}

func TestTheLongestOfThrottlersIsKept(t *testing.T) {
	err := failure(answered(429, `{"statusCode":429,"message":"x"}`, "Retry-After", "3", "Retry-After-sandbox-create", "7"), true)
	var typed *adapters.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, 7*time.Second, typed.RetryAfter)
}

func TestTheOperatorsTroubleIsNotTold(t *testing.T) {
	for _, status := range []int{401, 403} {
		err := failure(answered(status, `{"statusCode":401,"message":"the key dtn_secret of org 7 is revoked"}`), false)
		require.NotContains(t, err.Error(), "dtn_secret")
	}
}
