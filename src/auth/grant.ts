import { splitScopes } from '../route/scopes.ts'
import type { Credentials } from './clients.ts'

/** A token request (RFC 6749, 4.4.2): the form in the body, and the headers that may identify the client. */
export type GrantRequest = {
  authorizations: readonly string[]
  contentType: string | undefined
  queryString: string
  body: Uint8Array | undefined
}

/**
 * A parsed token request whose credentials are not verified yet. An empty `scope` requests all scopes of the client.
 */
export type Grant = { credentials: Credentials; scope: string[] }

export type GrantError = 'invalid_request' | 'invalid_client' | 'invalid_scope' | 'unsupported_grant_type'

/** An error response of RFC 6749, 5.2. */
export type GrantRefusal = { error: GrantError; error_description: string }

const isForm = /^[\t ]*application\/x-www-form-urlencoded[\t ]*(;|$)/i

export const buildGrantRefusal = (error: GrantError, error_description: string): GrantRefusal => ({
  error,
  error_description,
})

/** The response is the same for an unknown client and for a wrong secret, so it does not reveal which clients exist. */
export const unknownClientRefusal = buildGrantRefusal('invalid_client', 'The client is unknown or its secret is wrong.')

/** Parses a token request. Returns a refusal if the request is malformed. */
export function readGrant({ authorizations, contentType, queryString, body }: GrantRequest): Grant | GrantRefusal {
  if (queryString !== '')
    return buildGrantRefusal('invalid_request', 'Send all parameters in the body. The query of a URL ends up in logs.')
  if (!isForm.test(contentType ?? ''))
    return buildGrantRefusal('invalid_request', 'Send the body as application/x-www-form-urlencoded.')
  const fields = readForm(body)
  if (!fields) return buildGrantRefusal('invalid_request', 'The body names a parameter twice or is not UTF-8.')
  const { grant_type, scope = '' } = fields
  if (grant_type === undefined) return buildGrantRefusal('invalid_request', 'The body lacks the grant_type.')
  if (grant_type !== 'client_credentials')
    return buildGrantRefusal('unsupported_grant_type', 'The grant_type must be client_credentials.')
  const credentials = readCredentials(authorizations, fields)
  return 'error' in credentials ? credentials : { credentials, scope: splitScopes(scope) }
}

type Fields = Partial<Record<string, string>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The form fields by name, without empty ones (RFC 6749, 3.2). Undefined if a name occurs twice or the body is not
 * UTF-8.
 */
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
    return client_id !== undefined && client_secret !== undefined ? { client_id, client_secret } : unknownClientRefusal
  if (authorizations.length > 1 || client_secret !== undefined)
    return buildGrantRefusal('invalid_request', 'Send the credentials once, in the header or in the body.')
  const credentials = readBasic(authorization)
  if (credentials && client_id !== undefined && client_id !== credentials.client_id)
    return buildGrantRefusal('invalid_request', 'The client_id in the body differs from the one in the header.')
  return credentials ?? unknownClientRefusal
}

/** Reads `Basic` credentials. Id and secret are form-encoded (RFC 6749, 2.3.1). */
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
