# The service, or any other command of fewnode, in a container:
#   docker build -t fewnode .
#   docker run --rm -v "$PWD:/data" fewnode predict --data mydata --support support.csv --all --out predictions.csv
# With a proxy and TLS before the service: deploy/compose.yaml.
FROM python:3.11-slim

RUN groupadd --system fewnode && useradd --system --gid fewnode --create-home fewnode
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt '.[serve]'

USER fewnode
WORKDIR /data
ENV OMP_NUM_THREADS=1
ENTRYPOINT ["fewnode"]
CMD ["--help"]
