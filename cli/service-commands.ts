import type { Command } from 'commander'
import type { Client } from '../client/index.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type Column, type FormatOption, printRows } from './print-rows.ts'

type Rows = Iterable<object> | AsyncIterable<object>

/**
 * Gives a command the options of a connection. It runs `work` with a client of the service that they name, and with the arguments and the
 * options. A token that the command creates itself has this scope.
 */
export function atService<Given extends unknown[]>(
  environment: NodeJS.ProcessEnv,
  command: Command,
  scope: string,
  work: (client: Client, ...given: Given) => Promise<void>,
): Command {
  return addConnectionOptions(command).action(async (...given: unknown[]) => {
    const { client } = await connect(environment, optionsIn<ConnectionOptions>(given), { scope })
    await work(client, ...(given as Given))
  })
}

/** Gives a command the options of a connection and `--format`. It prints the rows that the service lists. */
export function listAtService<Given extends unknown[]>(
  environment: NodeJS.ProcessEnv,
  command: Command,
  scope: string,
  columns: readonly Column[],
  readRows: (client: Client, ...given: Given) => Rows | Promise<Rows>,
): Command {
  return atService(environment, addFormatOption(command), scope, async (client, ...given: Given) =>
    printRows(optionsIn<FormatOption>(given), columns, await readRows(client, ...given)),
  )
}

/** commander passes the arguments, the options and the command. */
const optionsIn = <Options>(given: unknown[]): Options => given.at(-2) as Options

/** The first items of a listing, whose pages are at most as long. `list` gets the size of a page. */
export async function* firstOf<Item>(
  limit: number,
  maxSize: number,
  list: (size: number) => AsyncIterable<Item>,
): AsyncGenerator<Item> {
  let left = limit
  if (left <= 0) return
  for await (const item of list(Math.min(limit, maxSize))) {
    yield item
    left -= 1
    if (left === 0) return
  }
}
