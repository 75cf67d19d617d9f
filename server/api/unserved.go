package api

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi/check"
	"github.com/isthmus/isthmus/server/auth"
	"github.com/isthmus/isthmus/store"
	"github.com/isthmus/isthmus/translate"
	"github.com/labstack/echo/v4"
)

// unserved answers an operation that is not served. What it addresses comes first, as in E2B: a program that asks for
// something of a sandbox or a template that it does not have is told so, and SDKs have exceptions of their own for it.
func (s *server) unserved(c echo.Context, op *check.Operation) error {
	if err := s.addressed(c, op); err != nil {
		return err
	}
	return translate.Unserved(op.ID)
}

// addressed fails when the sandbox or the template that a call addresses is not there for the caller. The events of a
// sandbox outlive it, so nothing is looked up for them.
func (s *server) addressed(c echo.Context, op *check.Operation) error {
	switch op.ID {
	case "forkSandbox":
		return s.runs(c)
	case "assignTemplateTags", "deleteTemplateTags":
		return s.tagged(c, op)
	}
	if c.Param("templateID") == "" {
		return nil
	}
	given, err := url.PathUnescape(c.Param("templateID"))
	if err != nil {
		return bad(err)
	}
	return s.knowsTemplate(c.Request(), given)
}

// runs fails unless the addressed sandbox is the caller's and runs.
func (s *server) runs(c echo.Context) error {
	given, err := url.PathUnescape(c.Param("sandboxID"))
	if err != nil {
		return bad(err)
	}
	id, err := translate.SandboxID(given)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	sb, err := s.fleet.Sandbox(ctx, auth.From(ctx).Team.ID, id)
	if err != nil {
		return err
	}
	if sb.State != store.StateRunning {
		return adapters.Errorf(adapters.KindPrecondition, "sandbox %s does not run: connect to it first, which resumes it", id)
	}
	return nil
}

// tagged looks up the template that the body names.
func (s *server) tagged(c echo.Context, op *check.Operation) error {
	if err := checked(c, op); err != nil {
		return err
	}
	var body struct{ Target, Name string } // one or the other
	if err := json.NewDecoder(c.Request().Body).Decode(&body); err != nil {
		return bad(err)
	}
	return s.knowsTemplate(c.Request(), body.Target+body.Name)
}

func (s *server) knowsTemplate(r *http.Request, given string) error {
	reference, err := translate.TemplateReference(given)
	if err != nil {
		return err
	}
	return s.fleet.KnowsTemplate(r.Context(), auth.From(r.Context()).Team.ID, reference)
}
