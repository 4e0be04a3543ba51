// Package web holds the pages of the administrators' panel, which are scripts and styles without a
// build step. It serves nothing: package panel joins the scripts and serves them, with the API that
// they call. Begin with index.html and app.js.
package web

import "embed"

// Files are the pages: index.html, and what it refers to.
//
//go:embed *.html *.css *.js *.svg lib/*.js pages/*.js
var Files embed.FS
