/** The parts of a complete request that a refusal needs. */
export type CompleteRequest = {
  authorization: string
  request_id: string | undefined
  /** The length of its body. */
  bytes: number
}

/** The usual form of a request only. Node's parser handles everything else that HTTP allows. */
const usualHead =
  /^(?:GET|POST|PUT|PATCH|DELETE) \/v1\/[\w\-.~!$&'()*+,;=:@/?%[\]]* HTTP\/1\.1\r\n(?:[\w-]+: [ -~]*\r\n)+\r\n/

/** Headers that need more than a refusal, or that end a body in another way than by Content-Length. */
const unusualHeaders = new Set([
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
 * Parses bytes that are exactly one request below `/v1` with an Authorization header. Returns undefined for anything
 * else, and for anything that two parsers could read differently.
 */
export function parseCompleteRequest(bytes: Buffer): CompleteRequest | undefined {
  const text = bytes.toString('latin1')
  const head = usualHead.exec(text)?.[0]
  if (head === undefined) return undefined
  const values = parseHeaders(head)
  const authorization = values?.get('authorization')
  const length = values?.get('content-length') ?? '0'
  if (!values || authorization === undefined || !/^\d{1,9}$/.test(length)) return undefined
  if (head.length + Number(length) !== text.length) return undefined
  return { authorization, request_id: values.get('x-request-id'), bytes: Number(length) }
}

/** The headers by lower-case name; undefined if a name occurs twice or is in `unusualHeaders`. */
function parseHeaders(head: string): Map<string, string> | undefined {
  const values = new Map<string, string>()
  for (const line of head.split('\r\n').slice(1, -2)) {
    const nameEnd = line.indexOf(': ')
    const name = line.slice(0, nameEnd).toLowerCase()
    if (unusualHeaders.has(name) || values.has(name)) return undefined
    values.set(name, line.slice(nameEnd + 2))
  }
  return values
}
