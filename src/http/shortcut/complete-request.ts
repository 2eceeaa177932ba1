/** What stands in a request that came as one piece, as far as a refusal asks. */
export type Whole = {
  authorization: string
  request_id: string | undefined
  /** Of its body. */
  bytes: number
}

/** The usual form and no other: what HTTP allows besides is left to Node's parser. */
const usualHead =
  /^(?:GET|POST|PUT|PATCH|DELETE) \/v1\/[\w\-.~!$&'()*+,;=:@/?%[\]]* HTTP\/1\.1\r\n(?:[\w-]+: [ -~]*\r\n)+\r\n/

/** With these, more is to be done than to say no, or a body ends in another way than after so many bytes. */
const unusual = new Set([
  'transfer-encoding',
  'connection',
  'proxy-connection',
  'expect',
  'upgrade',
  'origin',
  'te',
  'trailer',
])

/**
 * Reads bytes that are one request below `/v1` with its Authorization, from its first byte to its last, with nothing
 * before it or behind. Undefined of all else, and of whatever could be read in two ways.
 */
export function readWhole(bytes: Buffer): Whole | undefined {
  const text = bytes.toString('latin1')
  const head = usualHead.exec(text)?.[0]
  if (head === undefined) return undefined
  const values = valuesOf(head)
  const authorization = values?.get('authorization')
  const length = values?.get('content-length') ?? '0'
  if (!values || authorization === undefined || !/^\d{1,9}$/.test(length)) return undefined
  if (head.length + Number(length) !== text.length) return undefined
  return { authorization, request_id: values.get('x-request-id'), bytes: Number(length) }
}

/** By name in small letters; undefined where a name comes twice, or is of those that are unusual. */
function valuesOf(head: string): Map<string, string> | undefined {
  const values = new Map<string, string>()
  for (const line of head.split('\r\n').slice(1, -2)) {
    const nameEnd = line.indexOf(': ')
    const name = line.slice(0, nameEnd).toLowerCase()
    if (unusual.has(name) || values.has(name)) return undefined
    values.set(name, line.slice(nameEnd + 2))
  }
  return values
}
