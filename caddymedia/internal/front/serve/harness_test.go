package serve_test

import "github.com/caddymedia/media/caddymedia/internal/test/testservice"

// The names of package testservice that the tests use most.
const (
	someKey      = testservice.SomeKey
	origin       = testservice.Origin
	imagePath    = testservice.ImagePath
	filePath     = testservice.FilePath
	signPath     = testservice.SignPath
	itemsPath    = testservice.ItemsPath
	multipart    = testservice.Multipart
	urlencoded   = testservice.Urlencoded
	bearer       = testservice.Bearer
	ticketBearer = testservice.TicketBearer
	svgPicture   = testservice.SVG
	pdfDocument  = testservice.PDF
)

type (
	site     = testservice.Site
	httpCase = testservice.Case
	reply    = testservice.Reply
	part     = testservice.Part
)

var (
	noon        = testservice.Noon
	newSiteWith = testservice.NewWith
	newSiteOn   = testservice.NewOn
	aSite       = testservice.Default
	account     = testservice.Account
	on          = testservice.On
	sizes       = testservice.Sizes
	run         = testservice.Run
	file        = testservice.File
	field       = testservice.Field
	form        = testservice.Form
	jpegPicture = testservice.JPEG
	gifPicture  = testservice.GIF
	pngPicture  = testservice.PNG
	pngOf       = testservice.PNGOf
	gifOf       = testservice.GIFOf
	zipArchive  = testservice.Zip
)
