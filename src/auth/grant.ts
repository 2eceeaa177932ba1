import type { Credentials } from './clients.ts'
import { splitScopes } from './scopes.ts'

/** What a token is asked for with: a form (RFC 6749, 4.4.2), and the headers that say who asks. */
export type GrantRequest = {
  authorizations: readonly string[]
  contentType: string | undefined
  queryString: string
  body: Uint8Array | undefined
}

/** An asking that is understood: nobody is believed yet. `scope` is empty where none is asked for: all are meant. */
export type Grant = { credentials: Credentials; scope: string[] }

export type GrantError = 'invalid_request' | 'invalid_client' | 'invalid_scope' | 'unsupported_grant_type'

/** A refusal in the words of RFC 6749, 5.2. */
export type GrantRefusal = { error: GrantError; error_description: string }

const isForm = /^[\t ]*application\/x-www-form-urlencoded[\t ]*(;|$)/i

export const refuseGrant = (error: GrantError, error_description: string): GrantRefusal => ({
  error,
  error_description,
})

/** Who asks is not known, or not with this secret: which of the two is not said. */
export const unknownClient = refuseGrant('invalid_client', 'The client is not known, or its secret is wrong.')

/** Understands a request for a token, or says what is wrong with it. */
export function readGrant({ authorizations, contentType, queryString, body }: GrantRequest): Grant | GrantRefusal {
  if (queryString !== '')
    return refuseGrant('invalid_request', 'Everything belongs into the body: addresses are logged.')
  if (!isForm.test(contentType ?? ''))
    return refuseGrant('invalid_request', 'The body is sent as application/x-www-form-urlencoded.')
  const fields = readForm(body)
  if (!fields) return refuseGrant('invalid_request', 'The body names something twice, or is not UTF-8.')
  const { grant_type, scope = '' } = fields
  if (grant_type === undefined) return refuseGrant('invalid_request', 'The body lacks the grant_type.')
  if (grant_type !== 'client_credentials')
    return refuseGrant('unsupported_grant_type', 'The grant_type is client_credentials.')
  const credentials = readCredentials(authorizations, fields)
  return 'error' in credentials ? credentials : { credentials, scope: splitScopes(scope) }
}

type Fields = Partial<Record<string, string>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Fields by name, those without a value left out (RFC 6749, 3.2); undefined for a name that stands twice. */
function readForm(body: Uint8Array | undefined): Fields | undefined {
  try {
    const entries = [...new URLSearchParams(utf8.decode(body))]
    if (new Set(entries.map(([name]) => name)).size < entries.length) return undefined
    return Object.fromEntries(entries.filter(([, value]) => value !== ''))
  } catch {
    return undefined
  }
}

function readCredentials(authorizations: readonly string[], fields: Fields): Credentials | GrantRefusal {
  const { client_id, client_secret } = fields
  const [authorization] = authorizations
  if (authorization === undefined)
    return client_id !== undefined && client_secret !== undefined ? { client_id, client_secret } : unknownClient
  if (authorizations.length > 1 || client_secret !== undefined)
    return refuseGrant('invalid_request', 'A client says who it is in one way: in the header, or in the body.')
  const credentials = readBasic(authorization)
  if (credentials && client_id !== undefined && client_id !== credentials.client_id)
    return refuseGrant('invalid_request', 'The body names another client than the header.')
  return credentials ?? unknownClient
}

/** `Basic`, with id and secret form-encoded each (RFC 6749, 2.3.1). */
function readBasic(authorization: string): Credentials | undefined {
  const encoded = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1]
  if (encoded === undefined) return undefined
  try {
    const [client_id = '', ...rest] = utf8.decode(Buffer.from(encoded, 'base64')).split(':')
    if (rest.length === 0) return undefined
    return { client_id: decodeForm(client_id), client_secret: decodeForm(rest.join(':')) }
  } catch {
    return undefined
  }
}

const decodeForm = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))
