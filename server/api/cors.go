package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// What browsers may send and read. The SDK's own headers are listed one by one, as a preflight fails over a
// single one that is missing. No credentials of a browser are involved, so every origin is allowed.
const (
	corsMethods = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"
	corsRequest = "Origin, Content-Length, Content-Type, User-Agent, Authorization, X-API-Key, X-Team-ID, " +
		"Idempotency-Key, X-Request-Id, browser, lang, lang_version, machine, os, package_version, processor, " +
		"publisher, release, sdk_runtime, system"
	corsExposed = "X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"Retry-After, Should-Retry, X-Request-Id"
)

// cors answers preflights and lets browsers read every answer, errors too.
func cors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Access-Control-Allow-Origin", "*")
		if c.Request().Method != http.MethodOptions {
			header.Set("Access-Control-Expose-Headers", corsExposed)
			return next(c)
		}
		header.Set("Access-Control-Allow-Methods", corsMethods)
		header.Set("Access-Control-Allow-Headers", corsRequest)
		header.Set("Access-Control-Max-Age", "43200")
		return c.NoContent(http.StatusNoContent)
	}
}
