import { queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export const doctorQuery = queryOptions({
  queryKey: ['operations', 'doctor'],
  queryFn: ({ signal }) => client.operations.doctor({ signal }),
})

export const metricsQuery = queryOptions({
  queryKey: ['operations', 'metrics'],
  queryFn: ({ signal }) => client.operations.metrics({ signal }),
})
