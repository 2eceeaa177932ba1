// Directus loads this native package at its start, for flows that run scripts and for sandboxed extensions. There are none
// here, and building it takes minutes, a compiler and the headers of the running Node.
export default {}
