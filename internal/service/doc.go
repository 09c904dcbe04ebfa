// Package service serves an estate's containers over HTTP: the API that docs/api.md describes, badges, metrics, and the
// page that people look at.
//
// It guarantees that whatever it does to a container is done by the embedded store, with the same linearization
// points, fences and refusals as the tool's: it may be killed at any moment, and beside it the tool and other programs work
// on the same estate. It acts for whom a token names and for nobody else; nothing is written without one, unless
// loopback is trusted, and an operator's work never. An acknowledged command is durable.
//
// It does not guarantee privacy: it speaks plain HTTP, and whoever reaches the port may read pages, though no object's
// bytes. The clock is the host's, the same that the embedded store goes by.
package service
