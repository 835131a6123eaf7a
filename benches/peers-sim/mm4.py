"""M/M/4 at 80 % with SimPy: two events for each job, its arrival and its departure."""

import random
import sys
import time

import simpy

RATE, SERVERS = 3.2, 4


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    chance = random.Random(7)
    env = simpy.Environment()
    servers = simpy.Resource(env, capacity=SERVERS)
    waited = 0.0

    def job():
        nonlocal waited
        arrived = env.now
        with servers.request() as turn:
            yield turn
            waited += env.now - arrived
            yield env.timeout(chance.expovariate(1.0))

    def source():
        for _ in range(jobs):
            env.process(job())
            yield env.timeout(chance.expovariate(RATE))

    env.process(source())
    before = time.process_time()
    env.run()
    spent = time.process_time() - before
    print(f"SimPy: {2 * jobs / spent:.0f} events per processor second, mean wait {waited / jobs:.4f}")


main()
