import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { useService } from './support/service.ts'

const service = useService()

type Node = { name: string; type: string; parameters: Record<string, unknown> }
type Workflow = { nodes: Node[]; connections: Record<string, { main: { node: string }[][] }> }
type Json = { [member: string]: unknown }

const workflow = JSON.parse(readFileSync(new URL('../examples/n8n/kith.json', import.meta.url), 'utf8')) as Workflow
const nodeOf = (name: string) => workflow.nodes.find(node => node.name === name)!
const next = (name: string) => workflow.connections[name]?.main[0]?.[0]?.node

/** The value of a parameter: what begins with `=` is a text with expressions of JavaScript between double braces. */
function textOf(parameter: string, names: Record<string, unknown>): string {
  if (!parameter.startsWith('=')) return parameter
  const evaluate = (code: string) => new Function(...Object.keys(names), `return ${code}`)(...Object.values(names))
  return parameter.slice(1).replaceAll(/\{\{(.*?)\}\}/gs, (_, code: string) => String(evaluate(code)))
}

/** Sends the requests of the nodes after a trigger, as n8n does, and returns the last response. */
async function runFrom(trigger: string, body: Json, token: string): Promise<{ status: number; json: Json }[]> {
  const outputs = new Map<string, Json>([[trigger, { body }]])
  const responses: { status: number; json: Json }[] = []
  let [previous, name] = [trigger, next(trigger)]
  for (; name !== undefined; previous = name, name = next(name)) {
    const { type, parameters } = nodeOf(name)
    const $json = outputs.get(previous)!
    const $ = (other: string) => ({ item: { json: outputs.get(other)! } })
    const names = { $json, $, $execution: { id: `run-${trigger}` } }
    if (type === 'n8n-nodes-base.filter') {
      const { conditions } = parameters.conditions as { conditions: { leftValue: string }[] }
      if (textOf(conditions[0]!.leftValue, names) !== 'true') return responses
      outputs.set(name, $json)
      continue
    }
    const { method, url, jsonBody, headerParameters } = parameters as Record<string, string> & {
      headerParameters?: { parameters: { name: string; value: string }[] }
    }
    const extra = (headerParameters?.parameters ?? []).map(each => [each.name, textOf(each.value, names)])
    const response = await fetch(textOf(url!, names).replace('http://127.0.0.1:8080', service.address), {
      method: method!,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...Object.fromEntries(extra) },
      ...(jsonBody !== undefined && { body: textOf(jsonBody, names) }),
    })
    const json = (await response.json()) as Json
    responses.push({ status: response.status, json })
    outputs.set(name, json)
  }
  return responses
}

it('the workflow for n8n stores what a form sends, once, and reads a person of a change only if she may be written to', async () => {
  const { client, key } = await service.organization()
  const token = await service.tokenFor(key, 'people:read people:write consents:read')
  const form = { id: 'ada/1', email: 'ada@example.com', page: 'https://shop.example/newsletter' }
  for (const repeated of [false, true]) {
    const [stored] = await runFrom('Form', form, token)
    expect([repeated, stored?.status]).toEqual([repeated, 201])
  }
  const ada = await client.people.get('ada/1')
  expect(ada).toMatchObject({ version: 1, email: 'ada@example.com', consents: [{ state: true }, { state: false }] })
  const change = (await client.changes.list({ after: 0 }).page()).items.find(({ subject }) => subject === 'person')!
  const event = { type: 'person.created', data: change as unknown as Json }
  const responses = await runFrom('A change from kith', event, token)
  expect(responses.map(({ status }) => status)).toEqual([200, 200])
  expect(responses[1]?.json.data).toMatchObject({ external_id: 'ada/1' })
  await client.people.patch('ada/1', { consents: [{ consent_type_id: 1, channel: 'email', state: false }] })
  expect((await runFrom('A change from kith', event, token)).map(({ status }) => status)).toEqual([200])
})
