/**
 * The names in a header of preferences, such as Accept-Language, in order, with their qualities. A malformed quality is
 * 0.
 */
export function readQualities(header: string): { name: string; quality: number }[] {
  return header.split(',').map(element => {
    const [name = '', ...parameters] = element.split(';').map(part => part.trim())
    const quality = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
    return { name, quality: quality >= 0 && quality <= 1 ? quality : 0 }
  })
}
