import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** A code that the issuer has given out, with what it was requested for. */
type Grant = { nonce: string; challenge: string; redirectUri: string; claims: Record<string, unknown> }

/** An issuer of OpenID Connect on loopback, at which one person signs in at once. */
export type TestIssuer = {
  url: string
  /** The settings with which kith knows the issuer. */
  environment: Record<string, string>
  /** The claims of the next ID token, beside those that the protocol needs. They replace these, too. */
  claims: Record<string, unknown>
  /** The error with which the issuer leads the next person back, instead of a code. */
  error: string | undefined
  /** Signs the next ID tokens with a key that it does not publish. */
  isForged: boolean
  /** Answers every request with 503. */
  isAway: boolean
  /** Whether a request for tokens gets a body without an end. `sentBytes` counts what was sent of it. */
  isEndless: boolean
  sentBytes: number
  stop(): Promise<void>
}

const clientId = 'kith-console'
const clientSecret = 'the secret of the console'

export async function startIssuer(): Promise<TestIssuer> {
  const [published, other] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
  const jwk = { ...(await exportJWK(published.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }
  const grants = new Map<string, Grant>()
  const issuer = {
    claims: {},
    error: undefined,
    isForged: false,
    isAway: false,
    isEndless: false,
    sentBytes: 0,
  } as unknown as TestIssuer

  function authorize(query: URLSearchParams, response: ServerResponse) {
    const redirectUri = query.get('redirect_uri')!
    const back = new URL(redirectUri)
    back.searchParams.set('state', query.get('state')!)
    if (issuer.error !== undefined) {
      back.searchParams.set('error', issuer.error)
      back.searchParams.set('error_description', '<img src=x onerror=alert(1)>')
    } else {
      const code = randomUUID()
      const challenge = query.get('code_challenge_method') === 'S256' ? query.get('code_challenge')! : ''
      grants.set(code, { nonce: query.get('nonce')!, challenge, redirectUri, claims: { ...issuer.claims } })
      back.searchParams.set('code', code)
    }
    response.writeHead(302, { Location: back.href }).end()
  }

  async function issueToken(form: URLSearchParams, response: ServerResponse) {
    const grant = grants.get(form.get('code') ?? '')
    grants.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient = form.get('client_id') === clientId && form.get('client_secret') === clientSecret
    if (grant?.challenge !== challenge || grant.redirectUri !== form.get('redirect_uri') || !isClient)
      return sendJson(response, { error: 'invalid_grant' }, 400)
    const now = Math.floor(Date.now() / 1_000)
    const standard = { iss: issuer.url, aud: clientId, sub: 'user-1', nonce: grant.nonce, iat: now, exp: now + 60 }
    const id_token = await new SignJWT({ ...standard, ...grant.claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(issuer.isForged ? other.privateKey : published.privateKey)
    sendJson(response, { access_token: randomUUID(), token_type: 'Bearer', expires_in: 60, id_token })
  }

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, issuer.url)
    if (issuer.isAway) return sendJson(response, {}, 503)
    if (pathname === '/.well-known/openid-configuration') return sendJson(response, metadataOf(issuer.url))
    if (pathname === '/jwks') return sendJson(response, { keys: [jwk] })
    if (pathname === '/authorize') return authorize(searchParams, response)
    if (issuer.isEndless) return sendEndless(response, issuer)
    return issueToken(await readForm(request), response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const environment = {
    AUTH_ISSUER: url,
    AUTH_JWKS_URL: `${url}/jwks`,
    AUTH_AUDIENCE: 'kith',
    AUTH_CLIENT_ID: clientId,
    AUTH_CLIENT_SECRET: clientSecret,
    AUTH_SIGN_IN_NAME: 'Example Login',
  }
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return Object.assign(issuer, { url, environment, stop })
}

const metadataOf = (url: string) => ({
  issuer: url,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
  // kith reads the keys only at AUTH_JWKS_URL.
  jwks_uri: `${url}/other-keys`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
  code_challenge_methods_supported: ['S256'],
})

/** Sends JSON that never ends, until the client ends the connection. */
async function sendEndless(response: ServerResponse, issuer: TestIssuer) {
  response.writeHead(200, { 'Content-Type': 'application/json' }).write('{"access_token":"')
  const part = 'x'.repeat(65_536)
  const parts = function* () {
    for (;;) {
      issuer.sentBytes += part.length
      yield part
    }
  }
  await pipeline(parts, response).catch(() => {})
}

function sendJson(response: ServerResponse, body: object, status = 200) {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request) text += chunk
  return new URLSearchParams(text)
}
