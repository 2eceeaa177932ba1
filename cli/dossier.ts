import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { type DossierLine, pageLanguages } from '../client/index.ts'
import { fileExists, pathOf, writeAll } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { otherHoldersText } from './other-holders.ts'
import { printStderr } from './terminal.ts'

const scope = 'people:read exports:read consents:read changes:read records:read'

export const dossierCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'dossier',
    'Writes everything that is held about one person: lines of JSON, or an HTML page to read, to print and to send to the person.',
  )
    .examples(
      'dossier ada --output ada.html',
      'dossier ada --output ada.html --language de',
      'dossier ada --output ada.ndjson',
      'dossier --id 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f | jq .type',
    )
    .argument('<external_id>', 'The person. Also the last name of a deleted person leads to the dossier.')
    .option('--id', 'The argument is the internal identifier.')
    .option('--output <file>', 'The file to write, which only you may read. Default: standard output.')
    .option(
      '--format <format>',
      'The format. html is a page without scripts, which loads nothing. Default: as the file name says, else ndjson.',
      { choices: ['ndjson', 'html'] },
    )
    .option(
      '--language <language>',
      'The language of the page. Default: that of the person, else of the organization.',
      {
        choices: pageLanguages,
      },
    )
    .option('--force', 'Overwrite an existing file.')
    .atService(scope, async (client, person, options) => {
      const { output, language, format = /\.html?$/i.test(output ?? '') ? 'html' : 'ndjson' } = options
      if (language !== undefined && format !== 'html')
        throw new Error('--language is for a page: use it with --format html, or with an --output that ends in .html.')
      const address = options.id ? { id: person } : person
      const text =
        format === 'html'
          ? client.people.dossierPage(address, { ...(language && { language }), onOtherHolders: tellOtherHolders })
          : jsonOf(client.people.dossier(address))
      if (output === undefined) return writeAll(process.stdout, text)
      const path = pathOf(environment, output)
      if (!options.force && (await fileExists(path)))
        throw new Error(`${output} exists already. Use --force to overwrite it.`)
      await writeFileWhole(path, text)
      printStderr(`The dossier is in ${output}.`)
    })

const tellOtherHolders = (other_holders: string[]) => {
  for (const message of otherHoldersText({ other_holders })) printStderr(message)
}

async function* jsonOf(lines: AsyncIterable<DossierLine>): AsyncGenerator<string> {
  for await (const line of lines) {
    if (line.type === 'about') tellOtherHolders(line.other_holders)
    yield `${JSON.stringify(line)}\n`
  }
}

/** Writes the file under a temporary name first, so that an incomplete dossier never has the final name. */
async function writeFileWhole(path: string, text: AsyncIterable<string>): Promise<void> {
  const part = `${path}.part`
  await rm(part, { force: true })
  const file = createWriteStream(part, { flags: 'wx', mode: 0o600 })
  try {
    await once(file, 'open')
    await pipeline(text, file)
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}
