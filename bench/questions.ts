import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { serverVersion } from './database.ts'
import { minPeople } from './options.ts'
import { populateQuestions } from './questions/population.ts'
import { createAsk, type QuestionsPart } from './questions/questions-part.ts'
import { printPlatform } from './report.ts'
import { withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const folder = fileURLToPath(new URL('questions/', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** A part is a file of this folder that exports `measure`. */
const parts = readdirSync(folder)
  .map(file => file.replace(/\.ts$/, ''))
  .filter(name => !['population', 'questions-part'].includes(name))
  .sort()

/** Asks the questions of each part among many people. */
async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '1000000' },
      requests: { type: 'string', default: '200' },
      only: { type: 'string', default: parts.join(',') },
    },
  })
  const names = values.only.split(',')
  const unknown = names.filter(name => !existsSync(`${folder}${name}.ts`))
  if (unknown.length > 0) throw new Error(`--only takes ${parts.join(', ')}, not ${unknown.join(', ')}.`)
  const options = { people: minPeople, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const { service, postgres } = await addTarget(checkout, 'bench')
    const scopes = 'people:read people:write records:read records:write schema:read schema:write changes:read'
    const token = await createToken(checkout, service, scopes, 'small')
    const ask = createAsk(service.address, token)
    const people = Number(values.people)
    const population = await populateQuestions(service, ask, 'small', people)
    printPlatform(await serverVersion(service))
    print(`${people.toLocaleString('en')} people, ${values.requests} requests of each kind`)
    const context = { service, postgres, token, ask, print, requests: Number(values.requests), ...population }
    for (const name of names) {
      print()
      print(name)
      const part = (await import(`./questions/${name}.ts`)) as { measure: QuestionsPart }
      await part.measure(context)
    }
  })
}

await main()
