import { createReadStream } from 'node:fs'
import type { Service } from './environment.ts'
import { runProgram } from './measure.ts'

// psql and curl take about as little CPU as each other, so a comparison of the two compares what they ask.

export function psql({ url }: Pick<Service, 'url'>, ...commands: string[]): Promise<string> {
  const words = commands.flatMap(command => ['-c', command])
  return runProgram('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url, ...words], { PATH: process.env.PATH })
}

export const curl = (token: string, ...words: string[]): Promise<string> =>
  runProgram('curl', ['-sS', '--fail', '-H', `Authorization: Bearer ${token}`, ...words], { PATH: process.env.PATH })

export async function countLines(path: string): Promise<number> {
  let lines = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}
