import ipaddr from 'ipaddr.js'

/** How an answer was given. */
export const methods = [
  'web_form',
  'double_opt_in',
  'preference_page',
  'unsubscribe_link',
  'gpc',
  'phone',
  'paper',
  'import',
  'api',
  'other',
] as const
export type Method = (typeof methods)[number]

/** The claims of a client about an answer. The service records its own time, actor and request id beside it. */
export type Evidence = {
  method?: Method
  source?: string
  ip?: string
  user_agent?: string
  text_version?: number
  reference?: string
  consent_string?: string
}

/** The maximum sizes of texts, in bytes of UTF-8. */
const maxTextBytes = { source: 2_048, user_agent: 2_048, consent_string: 8_192 } as const

const members = [
  'method',
  'source',
  'ip',
  'user_agent',
  'text_version',
  'reference',
  'consent_string',
] as const satisfies (keyof Evidence)[]

/** The given members of the evidence, with the address in its normal form. Null if none is given. */
export function evidenceOf(entry: Evidence): Evidence | null {
  const given = members.filter(member => entry[member] !== undefined)
  if (given.length === 0) return null
  const evidence: Evidence = Object.fromEntries(given.map(member => [member, entry[member]]))
  if (evidence.ip !== undefined) evidence.ip = normalAddress(evidence.ip)
  return evidence
}

/** IPv6 as in RFC 5952. An IPv4-mapped address is its IPv4 address. */
function normalAddress(text: string): string {
  const address = ipaddr.process(text)
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString()
}

/** The fault of the evidence of an answer to a consent type that has this number of texts. */
export function evidenceFault(
  entry: Evidence,
  textVersions: number,
): { field: keyof Evidence; message: string } | undefined {
  const { text_version } = entry
  if (text_version !== undefined && text_version > textVersions)
    return {
      field: 'text_version',
      message:
        textVersions === 0
          ? 'the consent type has no texts: add the text first'
          : `is not a text of the consent type: its versions are 1 to ${textVersions}`,
    }
  const texts = Object.keys(maxTextBytes) as (keyof typeof maxTextBytes)[]
  const field = texts.find(name => Buffer.byteLength(entry[name] ?? '') > maxTextBytes[name])
  return field && { field, message: `must be at most ${maxTextBytes[field]} bytes in UTF-8` }
}
