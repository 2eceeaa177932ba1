import { once } from 'node:events'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'

// The health check of a container. It exits with 0 if the service of the same environment answers /healthz, else with 1.
const { HOST = '127.0.0.1', PORT = '8080', TLS_CERT_FILE } = process.env
const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[HOST] ?? HOST
const address = { host, port: Number(PORT), path: '/healthz', timeout: 4_000 }
// The certificate is for the name that clients use, not for this address. The request contains no secret.
const request = TLS_CERT_FILE ? getSecure({ ...address, rejectUnauthorized: false }) : getPlain(address)
request.on('timeout', () => request.destroy(new Error('The service did not respond within 4 seconds.')))
try {
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
  process.exitCode = answer.statusCode === 200 ? 0 : 1
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
