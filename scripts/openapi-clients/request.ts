import createClient from 'openapi-fetch'
import type { paths } from './kith.ts'

const headers = { Authorization: `Bearer ${process.env.KITH_TOKEN}` }
const client = createClient<paths>({ baseUrl: process.env.KITH_URL!, headers })
await client.POST('/v1/people', { body: { external_id: 'openapi-typescript', first_name: 'Ada' } })
const params = { path: { external_id: 'openapi-typescript' } }
const { data } = await client.GET('/v1/people/{external_id}', { params })
console.log(data?.data.first_name)
