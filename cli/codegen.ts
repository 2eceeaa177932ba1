import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { schemaText } from './codegen-text.ts'
import { answer, newCommand } from './command.ts'
import { type ConnectionOptions, connect, pathOf, withConnection } from './connection.ts'
import { readIfThere } from './read-if-there.ts'

type CodegenOptions = ConnectionOptions & { out: string; check?: true; json?: true }

export function codegenCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'codegen',
    'write the types of an organization for the TypeScript client: createClient<Schema>(…)',
    ['codegen --out schema.ts --url http://127.0.0.1:8080 --token "$TOKEN"', 'codegen --out schema.ts --check'],
  )
    .requiredOption('--out <file>', 'the file to write')
    .option('--check', 'write nothing, and end with 1 when the file is stale')
  return withConnection(command).action((options: CodegenOptions) => generate(environment, options))
}

async function generate(environment: NodeJS.ProcessEnv, options: CodegenOptions) {
  const { out, check } = options
  const file = pathOf(environment, out)
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const text = schemaText(await client.schema.get())
  const stands = await readIfThere(file)
  if (check && stands !== text) throw new Error(`${out} is stale: the organization declares something else now.`)
  if (stands !== text) await writeFile(file, text)
  const said = stands === text ? `${out} is up to date` : `wrote ${out}`
  answer(options, { value: { file: out, written: stands !== text }, said: [said] })
}
