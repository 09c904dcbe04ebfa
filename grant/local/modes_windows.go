package local

// modesTell: a file's mode says nothing about who may read it; the folder is the user's own.
const modesTell = false
