import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { schemaText } from './codegen-text.ts'
import { newCommand, printResult } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { pathOf, readFileOrNull } from './files.ts'

type CodegenOptions = ConnectionOptions & { output: string; check?: true; json?: true }

export function codegenCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand(
    'codegen',
    "Writes an organization's stacks and attributes as types for the TypeScript client: createClient<Schema>(…).",
    ['codegen --output schema.ts --url http://127.0.0.1:8080 --token "$TOKEN"', 'codegen --output schema.ts --check'],
  )
    .requiredOption('--output <file>', 'The file to write.')
    .option('--check', 'Write nothing. Exit with 1 if the file is stale.')
  return addConnectionOptions(command).action((options: CodegenOptions) => generate(environment, options))
}

async function generate(environment: NodeJS.ProcessEnv, options: CodegenOptions) {
  const { output, check } = options
  const file = pathOf(environment, output)
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const text = schemaText(await client.schema.get())
  const isCurrent = (await readFileOrNull(file)) === text
  if (check && !isCurrent)
    throw new Error(`${output} is stale: the schema of the organization has changed. Run kith codegen.`)
  if (!isCurrent) await writeFile(file, text)
  const message = isCurrent ? `${output} is up to date.` : `Wrote ${output}.`
  printResult(options, { value: { file: output, written: !isCurrent }, messages: [message] })
}
