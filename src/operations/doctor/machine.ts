import { X509Certificate } from 'node:crypto'
import { lstat, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fetchOutsideKeys } from '../../auth/keys/outside-keys.ts'
import { freeBytes } from '../../db/embedded.ts'
import { readTls } from '../../http/server/tls.ts'
import type { Config } from '../../process/config.ts'
import { type Finding, ok, runCheck, warning, wrong } from './finding.ts'

const dayMs = 86_400_000
const minCertificateDays = 30
const lowFreeBytes = 2 ** 30
const minFreeBytes = 2 ** 28

/** Checks the permissions and free disk space of the embedded PostgreSQL's data folder. */
export async function checkDataFolder({ dataDir, databaseUrl }: Config): Promise<Finding[]> {
  if (databaseUrl !== undefined) return []
  const folder = resolve(dataDir)
  const found = await stat(folder).catch(() => undefined)
  if (found) return [...(await checkPermissions(folder)), ...(await checkFreeSpace(folder))]
  const advice = 'Nothing to do before the first start. After it, check KITH_DATA_DIR.'
  return [warning('data folder', `${folder} does not exist yet`, advice), ...(await checkFreeSpace(dirname(folder)))]
}

const groupOrOthers = 0o077
const otherWriters = 0o022

async function checkPermissions(folder: string): Promise<Finding[]> {
  const found: Finding[] = []
  const forbid = async (path: string, bits: number, action: string, mode: string) => {
    const file = await lstat(path).catch(() => undefined)
    if (file && file.mode & bits)
      found.push(wrong('permissions', `${path} may be ${action} by other users`, `chmod ${mode} ${path}`))
  }
  await forbid(folder, otherWriters, 'changed', 'go-w')
  await forbid(join(folder, 'postgresql', 'password'), groupOrOthers, 'read', '600')
  await forbid(join(folder, 'postgresql', 'data'), groupOrOthers, 'entered', '700')
  return found.length > 0 ? found : [ok('permissions', `${folder} is closed to other users`)]
}

const gigabytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`

async function checkFreeSpace(folder: string): Promise<Finding[]> {
  return runCheck('disk', 'See KITH_DATA_DIR.', async () => {
    const free = await freeBytes(folder)
    const message = `${gigabytes(free)} are free on the disk of ${folder}`
    const advice = 'Free disk space. PostgreSQL stops writing when the disk is full.'
    if (free < minFreeBytes) return wrong('disk', message, advice)
    return [free < lowFreeBytes ? warning('disk', message, advice) : ok('disk', message)]
  })
}

/** Checks that certificate and key match, and that the certificate is valid for another 30 days. */
export function checkTls({ tls }: Config): Promise<Finding[]> {
  return runCheck('tls', 'Correct the files that TLS_CERT_FILE and TLS_KEY_FILE name.', async () => {
    if (!tls) return []
    const { cert } = readTls(tls)
    const { validFromDate, validToDate } = new X509Certificate(cert)
    const until = validToDate.toISOString().slice(0, 10)
    const renew = `Renew ${tls.certFile}, then send the service SIGHUP.`
    const found: Finding[] = []
    if (validToDate.getTime() < Date.now()) found.push(wrong('tls', `the certificate expired on ${until}`, renew))
    else if (validFromDate.getTime() > Date.now())
      found.push(wrong('tls', 'the certificate is not valid yet', 'Check the clock of this machine.'))
    else if (validToDate.getTime() < Date.now() + minCertificateDays * dayMs)
      found.push(warning('tls', `the certificate expires on ${until}`, renew))
    else found.push(ok('tls', `certificate and key match, valid until ${until}`))
    if ((await stat(tls.keyFile)).mode & 0o007)
      found.push(warning('tls', `${tls.keyFile} can be read by every user`, `chmod o-rwx ${tls.keyFile}`))
    return found
  })
}

/** Checks that the keys of the external issuer can be fetched and used. */
export function checkIssuer({ outsideIssuer }: Config): Promise<Finding[]> {
  return runCheck('issuer', 'Check AUTH_JWKS_URL, and that this machine reaches it.', async () => {
    if (!outsideIssuer) return []
    const keys = await fetchOutsideKeys(outsideIssuer.jwksUrl)
    if (keys.size > 0) return ok('issuer', `${outsideIssuer.issuer} has ${keys.size} usable keys`)
    const advice = 'The key set needs a key with a kid, for ES256, RS256 or EdDSA.'
    return wrong('issuer', `${outsideIssuer.issuer} has no usable key`, advice)
  })
}
