// Package web holds the pages of the administrators' panel.
package web

import "embed"

// Files are the pages: index.html, and what it refers to.
//
//go:embed *.html *.css *.js *.svg lib/*.js pages/*.js
var Files embed.FS
