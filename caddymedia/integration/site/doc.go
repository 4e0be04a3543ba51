// Package site runs whole Caddys for the end to end tests: a Site in the process of the test, a
// Child in a process of its own, and clients for both. A Site is a process-global, so its tests are
// serial; packages of tests run side by side. Each of them calls Main in its TestMain.
package site
