const jsonType = 'application/json'

/**
 * Returns the one of the offered media types that an Accept header prefers to JSON (RFC 9110, 12.5.1), or undefined for JSON.
 * JSON is also the answer if nothing offered is acceptable: kith answers errors in JSON anyway.
 */
export function chooseMediaType(accept: string | undefined, offered: readonly string[]): string | undefined {
  if (accept === undefined || offered.length === 0) return undefined
  let best: { type: string; quality: number } | undefined
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map(part => part.trim())
    const type = name === '*/*' || name === 'application/*' ? jsonType : name
    const quality = qualityOf(parameters)
    if (quality === 0 || (type !== jsonType && !offered.includes(type))) continue
    if (!best || quality > best.quality) best = { type, quality }
  }
  return best?.type === jsonType ? undefined : best?.type
}

function qualityOf(parameters: string[]): number {
  const quality = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
  return quality >= 0 && quality <= 1 ? quality : 0
}
