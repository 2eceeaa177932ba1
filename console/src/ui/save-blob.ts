/** Lets the browser save a file. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser reads the file after the click, so its URL must live a little longer.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
