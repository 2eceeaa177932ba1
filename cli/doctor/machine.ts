import { X509Certificate } from 'node:crypto'
import { lstat, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fetchOutsideKeys } from '../../src/auth/outside-keys.ts'
import type { Config } from '../../src/config.ts'
import { readTls } from '../../src/http/server/tls.ts'
import { attempt, type Finding, ok, warning, wrong } from './finding.ts'

const dayMs = 86_400_000
const certificateDays = 30
const enoughBytes = 2 ** 30
const leastBytes = 2 ** 28

/** The folder of the embedded PostgreSQL: who may look into it, and how much room there is. */
export async function checkDataFolder({ dataDir, databaseUrl }: Config): Promise<Finding[]> {
  if (databaseUrl !== undefined) return []
  const folder = resolve(dataDir)
  const known = await stat(folder).catch(() => undefined)
  if (!known)
    return [
      warning('data folder', `${folder} is not there yet`, 'Nothing, before the first start; else see KITH_DATA_DIR.'),
      ...(await checkRoom(dirname(folder))),
    ]
  return [...(await checkPermissions(folder)), ...(await checkRoom(folder))]
}

const groupOrOthers = 0o077
const writers = 0o022

async function checkPermissions(folder: string): Promise<Finding[]> {
  const found: Finding[] = []
  const forbid = async (path: string, bits: number, what: string, mode: string) => {
    const file = await lstat(path).catch(() => undefined)
    if (file && file.mode & bits)
      found.push(wrong('permissions', `${path} may be ${what} by other users`, `chmod ${mode} ${path}`))
  }
  await forbid(folder, writers, 'changed', 'go-w')
  await forbid(join(folder, 'postgresql', 'password'), groupOrOthers, 'read', '600')
  await forbid(join(folder, 'postgresql', 'data'), groupOrOthers, 'entered', '700')
  return found.length > 0 ? found : [ok('permissions', `${folder} is closed to other users`)]
}

const gigabytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`

async function checkRoom(folder: string): Promise<Finding[]> {
  return attempt('disk', 'See KITH_DATA_DIR.', async () => {
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const message = `${gigabytes(free)} are free where ${folder} lies`
    const advice = 'Make room: PostgreSQL stops writing when there is none.'
    if (free < leastBytes) return [wrong('disk', message, advice)]
    return [free < enoughBytes ? warning('disk', message, advice) : ok('disk', message)]
  })
}

/** Certificate and key: one pair, good today and for a while. */
export function checkTls({ tls }: Config): Promise<Finding[]> {
  return attempt('tls', 'Mend the files that TLS_CERT_FILE and TLS_KEY_FILE name.', async () => {
    if (!tls) return []
    const { cert } = readTls(tls)
    const { validFromDate, validToDate } = new X509Certificate(cert)
    const until = validToDate.toISOString().slice(0, 10)
    const renew = `Renew ${tls.certFile}, then send the service SIGHUP.`
    const found: Finding[] = []
    if (validToDate.getTime() < Date.now()) found.push(wrong('tls', `the certificate expired on ${until}`, renew))
    else if (validFromDate.getTime() > Date.now())
      found.push(wrong('tls', 'the certificate is not valid yet', 'See the clock of this machine.'))
    else if (validToDate.getTime() < Date.now() + certificateDays * dayMs)
      found.push(warning('tls', `the certificate expires on ${until}`, renew))
    else found.push(ok('tls', `certificate and key are a pair, good until ${until}`))
    if ((await stat(tls.keyFile)).mode & 0o007)
      found.push(warning('tls', `${tls.keyFile} is open to every user`, `chmod o-rwx ${tls.keyFile}`))
    return found
  })
}

/** Whether the outside issuer's keys can be had, and used. */
export function checkIssuer({ outsideIssuer }: Config): Promise<Finding[]> {
  return attempt('issuer', 'See AUTH_JWKS_URL, and whether this machine reaches it.', async () => {
    if (!outsideIssuer) return []
    const keys = await fetchOutsideKeys(outsideIssuer.jwksUrl)
    if (keys.size > 0) return [ok('issuer', `${outsideIssuer.issuer} has ${keys.size} keys that can be used`)]
    const advice = 'The set needs a key with a kid, for ES256, RS256 or EdDSA.'
    return [wrong('issuer', `none of the keys of ${outsideIssuer.issuer} can be used`, advice)]
  })
}
