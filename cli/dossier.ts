import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Command } from 'commander'
import type { DossierLine } from '../client/index.ts'
import { newPlainCommand } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { dossierPage } from './dossier/page.ts'
import { pathOf } from './files.ts'
import { otherHoldersText } from './other-holders.ts'
import { printStderr } from './stderr.ts'

type Options = ConnectionOptions & { id?: true; html?: true; out?: string; force?: true }

const scope = 'people:read consents:read changes:read records:read'

export function dossierCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Writes everything that is held about one person: lines of JSON, or with --html a page to read, to print and to send to the person.'
  const command = newPlainCommand('dossier', description, [
    'dossier ada --html --out ada.html',
    'dossier ada --out ada.ndjson',
    'dossier --id 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f | jq .type',
  ])
    .argument('<external_id>', 'The person. Also the last name of a deleted person leads to the dossier.')
    .option('--id', 'The argument is the internal identifier.')
    .option('--html', 'Write one HTML page without scripts, which loads nothing.')
    .option('--out <file>', 'The file to write, which only you may read. Default: standard output.')
    .option('--force', 'Overwrite an existing file.')
  return addConnectionOptions(command).action((person: string, options: Options) => run(environment, person, options))
}

async function run(environment: NodeJS.ProcessEnv, person: string, options: Options): Promise<void> {
  const { client } = await connect(environment, options, { scope })
  const lines = tellOtherHolders(options.id ? client.people.dossier({ id: person }) : client.people.dossier(person))
  const text = options.html ? dossierPage(lines) : jsonOf(lines)
  if (options.out === undefined) return writeAll(process.stdout, text)
  const path = pathOf(environment, options.out)
  if (!options.force && (await exists(path)))
    throw new Error(`${options.out} exists already. Use --force to overwrite it.`)
  await writeFileWhole(path, text)
  printStderr(`The dossier is in ${options.out}.`)
}

/** The page is for the person, so what concerns others goes to the terminal. */
async function* tellOtherHolders(lines: AsyncIterable<DossierLine>): AsyncGenerator<DossierLine> {
  for await (const line of lines) {
    if (line.type === 'about') for (const message of otherHoldersText(line)) printStderr(message)
    yield line
  }
}

async function* jsonOf(lines: AsyncIterable<DossierLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`
}

const exists = (path: string) => stat(path).then(Boolean, () => false)

/** Writes the file under another name first: a dossier that was cut off never has the name of a whole one. */
async function writeFileWhole(path: string, text: AsyncIterable<string>): Promise<void> {
  const part = `${path}.part`
  await rm(part, { force: true })
  const file = createWriteStream(part, { flags: 'wx', mode: 0o600 })
  try {
    await once(file, 'open')
    await writeAll(file, text)
    file.end()
    await finished(file)
    await rename(part, path)
  } catch (error) {
    file.destroy()
    await rm(part, { force: true })
    throw error
  }
}

async function writeAll(output: Writable, text: AsyncIterable<string>): Promise<void> {
  for await (const part of text) if (!output.write(part)) await once(output, 'drain')
}
