/** Saves a file that the page has made. */
export function downloadFile(name: string, type: string, ...parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser reads the content after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** An identifier as a part of a file name. */
export const fileNameOf = (identifier: string): string => identifier.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 80)
