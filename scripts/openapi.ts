// Lints the OpenAPI document that the service shows, by the rules of redocly.yaml; or prints it, for who wants the file.
//   node scripts/openapi.ts --check      and --print, on stdout

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApiDocument } from '../src/app.ts'
import { loadConfig } from '../src/config.ts'
import { root } from './source.ts'

// The linter asks nobody for a newer version of itself, and tells nobody that it ran: it needs no network.
const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** The exit status of the linter: 0 where it has nothing to say. */
function lint(text: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'kith-openapi-'))
  try {
    const file = join(folder, 'openapi.json')
    writeFileSync(file, text)
    const redocly = join(root, 'node_modules/.bin/redocly')
    const { status, error } = spawnSync(redocly, ['lint', file, '--config', join(root, 'redocly.yaml')], {
      stdio: 'inherit',
      env: { ...process.env, ...quiet },
    })
    if (error) throw error
    return status ?? 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const text = JSON.stringify(openApiDocument({ config: loadConfig({}) }), null, 2)
  if (process.argv.includes('--print')) console.log(text)
  else process.exitCode = lint(text)
}
