import { once } from 'node:events'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'

// A container's health check: ends with 0 when the process that serves in the same environment answers /healthz, else 1.
const { HOST = '127.0.0.1', PORT = '8080', TLS_CERT_FILE } = process.env
const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[HOST] ?? HOST
const address = { host, port: Number(PORT), path: '/healthz', timeout: 4_000 }
// The certificate is for the name that clients use, not for this one; nothing is told to whoever answers.
const request = TLS_CERT_FILE ? getSecure({ ...address, rejectUnauthorized: false }) : getPlain(address)
request.on('timeout', () => request.destroy(new Error('no answer within 4 s')))
try {
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
  process.exitCode = answer.statusCode === 200 ? 0 : 1
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
