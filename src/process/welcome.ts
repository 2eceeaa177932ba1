import { join, resolve } from 'node:path'
import type { Config } from './config.ts'

const checkout = join(import.meta.dirname, '../..')
/** Whether this is an installed package, which contains no TypeScript. Its command is then the running program. */
const isPackage = !import.meta.filename.endsWith('.ts')

/** The first steps after a start: three shell lines that work in any folder, and a hint that describes them. */
export function firstSteps(address: string, config: Config): { hint: string; first_steps: string[] } {
  const kith = isPackage ? quote(process.argv[1]!) : `npm --prefix ${quote(checkout)} run -s kith --`
  const settings = settingsFor(config)
  const curl = `curl -s -H "Authorization: Bearer $TOKEN"`
  const json = `-H 'Content-Type: application/json'`
  return {
    hint: `Create a token, create and PATCH a person, and read it back${config.databaseUrl ? ' (with the same DATABASE_URL set)' : ''}:`,
    first_steps: [
      `TOKEN=$(${settings}${kith} token --org default --scope "people:read people:write")`,
      `${curl} ${json} ${address}/v1/people -d '{"external_id":"first"}' -o /dev/null; ${curl} ${json} -X PATCH ${address}/v1/people/first -d '{"first_name":"Ada","email_consent":true,"attribute_values":{"city":"Rome"}}'`,
      `${curl} ${address}/v1/people/first`,
    ],
  }
}

/**
 * The settings with which the token command finds the same embedded database. DATABASE_URL is a secret, so the lines do
 * not contain it.
 */
function settingsFor({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl) return ''
  const path = resolve(dataDir)
  return !isPackage && path === join(checkout, '.kith') ? '' : `KITH_DATA_DIR=${quote(path)} `
}

/** Quotes a word for a POSIX shell if necessary. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
