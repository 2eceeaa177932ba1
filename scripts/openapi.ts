// Lints the OpenAPI document and the AsyncAPI document of the service by the rules of redocly.yaml and compares the first with that of the
// last release, prints one on standard output, or keeps the first as that of the version of package.json.
//   node scripts/openapi.ts --check
//   node scripts/openapi.ts --print
//   node scripts/openapi.ts --print --async
//   node scripts/openapi.ts --release

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { asyncApiDocument, openApiDocument } from '../src/process/app.ts'
import { loadConfig } from '../src/process/config.ts'
import { version } from '../src/process/version.ts'
import { findBreakingChanges } from './openapi-changes.ts'
import { root } from './source.ts'

// Telemetry and the check for updates are off, so the linter needs no network.
const offlineEnvironment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Lints the documents and returns the exit status of the linter: 0 if it finds nothing. */
function lint(texts: Record<string, string>): number {
  const folder = mkdtempSync(join(tmpdir(), 'kith-openapi-'))
  try {
    const files = Object.keys(texts).map(name => join(folder, name))
    for (const file of files) writeFileSync(file, texts[basename(file)]!)
    const redocly = join(root, 'node_modules/.bin/redocly')
    const { status, error } = spawnSync(redocly, ['lint', ...files, '--config', join(root, 'redocly.yaml')], {
      stdio: 'inherit',
      env: { ...process.env, ...offlineEnvironment },
    })
    if (error) throw error
    return status ?? 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The documents of the releases, compressed, in the order of their names: `1.0.0-rc.1.json.gz`. */
const releases = join(root, 'docs/releases')

/** Prints what a client of the last release may rely on and the document no longer has. Returns 1 if there is anything, else 0. */
function compareWithRelease(text: string): number {
  const names = readdirSync(releases).filter(name => name.endsWith('.json.gz'))
  const last = names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)!
  const changes = findBreakingChanges(
    JSON.parse(String(gunzipSync(readFileSync(join(releases, last))))),
    JSON.parse(text),
  )
  for (const change of changes) console.error(`${change} (since ${last.replace('.json.gz', '')})`)
  return changes.length === 0 ? 0 : 1
}

if (import.meta.main) {
  const services = { config: loadConfig({}) }
  const openApi = JSON.stringify(openApiDocument(services), null, 2)
  const asyncApi = JSON.stringify(asyncApiDocument(services), null, 2)
  if (process.argv.includes('--print')) console.log(process.argv.includes('--async') ? asyncApi : openApi)
  else if (process.argv.includes('--release')) {
    mkdirSync(releases, { recursive: true })
    writeFileSync(join(releases, `${version}.json.gz`), gzipSync(openApi, { level: 9 }))
  } else {
    const texts = { 'openapi.json': openApi, 'asyncapi.json': asyncApi }
    process.exitCode = Math.max(lint(texts), compareWithRelease(openApi))
  }
}
